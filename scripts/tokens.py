"""`python -m scripts.tokens`."""

from cse.commands.tokens import app

if __name__ == "__main__":
    app()
