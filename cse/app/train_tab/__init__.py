"""The Train tab: the form of a training, its results as they come, and models of own files."""
