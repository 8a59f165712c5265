"""Groups of texts: links of near neighbours, near-duplicates, topics."""
