"""What stands before the app: names, limits and headers."""
