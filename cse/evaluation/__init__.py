"""Evaluations: each takes an `encode` callable (list of N sentences -> (N, d) array) and knows nothing of models."""
