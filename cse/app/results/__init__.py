"""The results of the page, a file each; the order is that of the places."""

from cse.app.result import Result
from cse.app.results.duplicates import Duplicates
from cse.app.results.groups import Groups
from cse.app.results.map import Map
from cse.app.results.neighbours import Neighbours
from cse.app.results.search import Search

RESULTS: tuple[type[Result], ...] = (Search, Map, Groups, Neighbours, Duplicates)
