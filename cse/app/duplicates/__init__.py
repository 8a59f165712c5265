"""The tab of near-duplicates: groups of near texts in the chosen corpus."""
