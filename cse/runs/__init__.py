"""Training runs: started by a function or command, repeated from a recipe, tracked and listed."""
