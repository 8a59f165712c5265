"""`python -m scripts.push`."""

from cse.commands.push import app

if __name__ == "__main__":
    app()
