"""The six places of the page, a file each: which results stand there, and in which order."""
