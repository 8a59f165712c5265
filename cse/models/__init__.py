"""Models by name: opened, saved, exported, and published to the hub or as a Space."""
