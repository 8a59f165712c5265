"""Files and folders: written whole or not at all, locked, checksummed, fetched from the hub."""
