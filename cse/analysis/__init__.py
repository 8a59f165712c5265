"""Explanations of a model: calibration, attribution, perturbations, maps, prefixes, prototypes."""
