"""The Gradio app: models as columns, one module per tab, and the page that holds them."""
