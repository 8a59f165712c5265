"""The commands: each file parses its options, calls the library and prints; `cse NAME` calls it."""

import sys

from cse.own_index import OwnIndex

sys.meta_path.insert(0, OwnIndex)
