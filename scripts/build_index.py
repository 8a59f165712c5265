"""`python -m scripts.build_index`."""

from cse.commands.build_index import app

if __name__ == "__main__":
    app()
