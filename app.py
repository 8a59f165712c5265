"""The app: contrastive sentence embeddings side by side. `python app.py` serves it on http://127.0.0.1:7860."""

from cse.commands.app import app

if __name__ == "__main__":
    app()
