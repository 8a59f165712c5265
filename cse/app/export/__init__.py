"""Export of results: as tables, figures for papers, JSON, and code that repeats them."""
