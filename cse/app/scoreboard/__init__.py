"""The models of the page with their scores and speeds: the strip above the tabs, and the tables of results."""
