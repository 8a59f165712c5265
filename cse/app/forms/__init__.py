"""Events of the page, errors at their fields, and links that restore a page."""
