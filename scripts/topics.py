"""`python -m scripts.topics`."""

from cse.commands.topics import app

if __name__ == "__main__":
    app()
