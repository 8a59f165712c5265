"""What the app keeps: corpora and their vectors, groups, maps, votes, and the state that holds them all."""
