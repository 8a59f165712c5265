"""Analyses of models and texts: calibration, attribution, maps, prefixes, topics, near-duplicates, blind votes."""
