"""The visible parts of the page, one per file."""
