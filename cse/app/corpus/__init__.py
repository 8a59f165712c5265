"""The corpus of the page: chosen in the bar above the tabs, encoded by every model, taken away."""
