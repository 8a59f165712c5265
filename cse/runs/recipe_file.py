"""Recipe files: the mapping in a JSON or YAML file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from cse.errors import ArtefactError
from cse.storage.writing import read_json

YAML = (".yaml", ".yml")
EXPONENT = re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+")  # 1e-4, which YAML 1.1 takes for a text


def read_recipe_file(path: Path) -> dict[str, Any]:
    """The mapping in a JSON file, or a YAML one by its suffix, of plain values; 1e-4 is a number in both.

    Raises ArtefactError if the file is missing or damaged, or holds no mapping with names as keys.
    """
    if path.suffix.lower() not in YAML:
        return read_json(path)
    value = _yaml(path)
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise ArtefactError(f"{path}: holds no recipe; give names and values, such as method: simcse")
    return value


def _yaml(path: Path) -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        """PyYAML's safe loader, which makes plain values alone, with numbers as in JSON."""

    Loader.add_implicit_resolver("tag:yaml.org,2002:float", EXPONENT, list("-+0123456789"))
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())[:160]
        raise ArtefactError(f"{path}: cannot be read as YAML ({reason}); correct it") from error
