"""Tabs of the page and their parts; Near-duplicates, Choose, Results and Train have folders of their own."""
