"""`python -m scripts.adapt`."""

from cse.commands.adapt import app

if __name__ == "__main__":
    app()
