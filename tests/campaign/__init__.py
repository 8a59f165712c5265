"""A campaign against the project's own commands: kills, damaged files and full disks, counted."""
