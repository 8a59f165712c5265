"""The commands: each file parses its options, calls the library and prints. Run them as `python -m scripts.NAME`."""
