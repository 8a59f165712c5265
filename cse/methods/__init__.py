"""Methods as values: templates, views, options and published settings, without torch."""
