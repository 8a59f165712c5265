"""`python -m scripts.reproduce`."""

from cse.commands.reproduce import app

if __name__ == "__main__":
    app()
