"""The visible parts of the page, one a file."""
