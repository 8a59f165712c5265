"""The instructions of the Dockerfile."""

from collections.abc import Iterator

from conftest import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text()


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """The instructions of a Dockerfile, each with its arguments in one line."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            name, _, arguments = line.partition(" ")
            yield name, arguments.strip()


def of(name: str) -> list[str]:
    """The arguments of every instruction of a name."""
    return [arguments for each, arguments in instructions(DOCKERFILE) if each == name]
