"""Guided tours of the page: their texts, what they measure, and the panel that shows them."""
