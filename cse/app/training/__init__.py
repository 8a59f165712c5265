"""Training on the server: the runs of visitors, each a process of its own, and the models that they send."""
