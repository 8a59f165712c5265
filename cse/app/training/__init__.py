"""Training on the server: a visitor's runs, each a process of its own, and the tab that shows them."""
