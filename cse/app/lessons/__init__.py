"""Guided tours of the page: a file of data each, and the panel that asks before it tells."""
