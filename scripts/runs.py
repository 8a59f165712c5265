"""`python -m scripts.runs`."""

from cse.commands.runs import app

if __name__ == "__main__":
    app()
