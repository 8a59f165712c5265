"""The state of a running app: columns of models, corpora, maps and visitors."""
