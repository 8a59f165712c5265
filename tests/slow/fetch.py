"""Fetch the tests of sentence-transformers, which its packages lack, from its repository into .venv."""

import io
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path
from urllib.request import urlopen

TARGET = Path(__file__).parents[2] / ".venv" / "sentence-transformers-tests"
ARCHIVE = "https://github.com/huggingface/sentence-transformers/archive/refs/tags/v{}.tar.gz"


def fetch() -> None:
    """Unpack the folder `tests` of the installed version's archive; raises OSError where it cannot be had."""
    with urlopen(ARCHIVE.format(version("sentence-transformers")), timeout=30) as answer:
        content = io.BytesIO(answer.read())
    partial = TARGET.with_name(f"{TARGET.name}.partial")
    with tarfile.open(fileobj=content) as archive:
        for member in filter(tarfile.TarInfo.isfile, archive.getmembers()):
            inner = member.name.partition("/")[2]
            if inner.startswith("tests/") and ".." not in inner:
                (partial / inner).parent.mkdir(parents=True, exist_ok=True)
                (partial / inner).write_bytes(archive.extractfile(member).read())
    partial.rename(TARGET)


if __name__ == "__main__" and not TARGET.is_dir():
    try:
        fetch()
    except (OSError, tarfile.TarError):
        sys.exit("sentence-transformers' tests could not be fetched: they are not run")
