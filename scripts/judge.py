"""`python -m scripts.judge`."""

from cse.commands.judge import app

if __name__ == "__main__":
    app()
