"""`python -m scripts.search_templates`."""

from cse.commands.search_templates import app

if __name__ == "__main__":
    app()
