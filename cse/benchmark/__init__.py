"""Models compared side by side: what is compared, on which tasks, against which published numbers."""
