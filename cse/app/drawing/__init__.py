"""Values as HTML."""
