"""The results of the page; the order is that of the places."""

from cse.app.result import Result
from cse.app.results.duplicates import Duplicates
from cse.app.results.groups import Groups, Neighbours
from cse.app.results.inside import Attention, Prefix, Prototypes
from cse.app.results.judge import Judge
from cse.app.results.map import Map
from cse.app.results.models import Models
from cse.app.results.scores import Labels, Ledger, Scores
from cse.app.results.search import Search
from cse.app.results.similarity import Disagreements, Pairs, Similarity
from cse.app.results.tokens import Template, Tokens
from cse.app.results.words import Changes, Words

RESULTS: tuple[type[Result], ...] = (
    Similarity, Pairs, Words, Changes, Disagreements, Search, Tokens, Template, Attention, Prefix, Prototypes, Map,
    Groups, Neighbours, Duplicates, Judge, Scores, Labels, Ledger, Models,
)  # fmt: skip
