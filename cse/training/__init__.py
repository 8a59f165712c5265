"""Training: losses, step, loop, recipes, resuming, and pretraining of the masked language model."""
