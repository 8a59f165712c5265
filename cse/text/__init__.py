"""Text read from files, tables and hub datasets, and written as CSV."""
