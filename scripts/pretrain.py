"""`python -m scripts.pretrain`."""

from cse.commands.pretrain import app

if __name__ == "__main__":
    app()
