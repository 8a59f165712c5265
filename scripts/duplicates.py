"""`python -m scripts.duplicates`."""

from cse.commands.duplicates import app

if __name__ == "__main__":
    app()
