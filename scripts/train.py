"""`python -m scripts.train`."""

from cse.commands.train import app

if __name__ == "__main__":
    app()
