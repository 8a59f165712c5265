"""Files and folders: written whole or not at all, checked when they are read; weights and the hub."""
