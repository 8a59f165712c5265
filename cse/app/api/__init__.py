"""Endpoints and downloads."""
