"""The results of the page, a file each; the order is that of the places."""

from cse.app.result import Result
from cse.app.results.judge import Judge
from cse.app.results.labels import Labels
from cse.app.results.models import Models
from cse.app.results.scores import Ledger, Scores
from cse.app.results.search import Search

RESULTS: tuple[type[Result], ...] = (Search, Judge, Scores, Labels, Ledger, Models)
