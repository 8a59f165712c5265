"""The commands of `cse.commands` in a clone: `python -m scripts.NAME`. None of this is installed."""
