"""Hook of MkDocs: links to files beside docs/, which the site does not hold, become their text."""

import re
from typing import Any


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page with the text of every link that leaves the folder in place of the link."""
    return re.sub(r"\[([^\]]+)\]\(\.\./[^)\s]+\)", r"\1", markdown)
