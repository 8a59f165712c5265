"""`python -m scripts.export`."""

from cse.commands.export import app

if __name__ == "__main__":
    app()
