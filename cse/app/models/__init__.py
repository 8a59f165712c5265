"""The models of the page: their columns, those that visitors add, and answers that are remembered."""
