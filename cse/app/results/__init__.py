"""The results of the page, a file each; the order is that of the places."""

from cse.app.result import Result
from cse.app.results.attention import Attention
from cse.app.results.changes import Changes
from cse.app.results.disagreements import Disagreements
from cse.app.results.duplicates import Duplicates
from cse.app.results.groups import Groups
from cse.app.results.judge import Judge
from cse.app.results.labels import Labels
from cse.app.results.map import Map
from cse.app.results.models import Models
from cse.app.results.neighbours import Neighbours
from cse.app.results.pairs import Pairs
from cse.app.results.prefix import Prefix
from cse.app.results.prototypes import Prototypes
from cse.app.results.scores import Ledger, Scores
from cse.app.results.search import Search
from cse.app.results.similarity import Similarity
from cse.app.results.template import Template
from cse.app.results.tokens import Tokens
from cse.app.results.words import Words

RESULTS: tuple[type[Result], ...] = (
    Similarity,
    Pairs,
    Words,
    Changes,
    Disagreements,
    Search,
    Tokens,
    Template,
    Attention,
    Prefix,
    Prototypes,
    Map,
    Groups,
    Neighbours,
    Duplicates,
    Judge,
    Scores,
    Labels,
    Ledger,
    Models,
)
