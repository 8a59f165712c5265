"""`python -m scripts.deploy`."""

from cse.commands.deploy import app

if __name__ == "__main__":
    app()
