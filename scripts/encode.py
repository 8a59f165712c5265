"""`python -m scripts.encode`."""

from cse.commands.encode import app

if __name__ == "__main__":
    app()
