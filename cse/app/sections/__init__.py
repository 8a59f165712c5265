"""The tabs of the page and their parts, one per file."""
