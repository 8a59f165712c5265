"""Results as HTML, colours, and the map component."""
