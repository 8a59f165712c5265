"""The commands: each file parses its options, calls the library and prints; `cse NAME` is `python -m scripts.NAME`."""
