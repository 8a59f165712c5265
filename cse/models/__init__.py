"""Model names, and opening and saving models."""
