"""A campaign against the project's own commands: one kill and one damaged byte for each kind of output, counted."""
