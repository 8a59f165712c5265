"""Benchmarks of the project: `python -m tests.bench WHAT`."""
