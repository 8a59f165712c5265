"""Exports to other tools, uploads to the hub, and Spaces."""
