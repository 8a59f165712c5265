"""The parts of the app: models as columns, one module per tab, and the page that holds them."""
