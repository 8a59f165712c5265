"""Files and folders written atomically and checked when read; weight files; the hub."""
