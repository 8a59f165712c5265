"""What a model name means, and opening and saving what it names."""
