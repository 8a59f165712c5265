"""The six places of the page: which results stand there, and in which order."""
