"""`python -m scripts NAME`."""

from cse.commands.__main__ import app

if __name__ == "__main__":
    app()
