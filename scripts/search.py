"""`python -m scripts.search`."""

from cse.commands.search import app

if __name__ == "__main__":
    app()
