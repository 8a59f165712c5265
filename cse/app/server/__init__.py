"""ASGI middleware of the app: host names, limits and headers."""
