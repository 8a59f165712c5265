"""`python -m scripts.evaluate`."""

from cse.commands.evaluate import app

if __name__ == "__main__":
    app()
