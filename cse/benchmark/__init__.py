"""Models side by side: representations, evaluation harness, results, tables, figures and published numbers."""
