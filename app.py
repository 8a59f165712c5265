"""The app: contrastive sentence embeddings side by side. `python app.py` serves it on http://127.0.0.1:7860."""

import sys

from cse.app.serving import main

if __name__ == "__main__":
    sys.exit(main())
