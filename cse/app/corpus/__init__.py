"""The corpus of the page: chosen in the row above the places, encoded by every model, taken away."""
