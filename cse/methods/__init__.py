"""Methods as values: templates, views, switches and published settings; nothing here imports torch."""
