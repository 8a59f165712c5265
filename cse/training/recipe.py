"""Recipes: the settings of a training, read from its checkpoint or a JSON or YAML file, to be used again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cse.errors import ArtefactError
from cse.files.checksums import DIGEST
from cse.files.writing import read_json
from cse.methods.catalogue import METHODS
from cse.methods.method import Method, When
from cse.methods.settings import SETTINGS, from_json, to_json
from cse.models.config import BackboneRecord
from cse.models.names import BACKBONE, location, record_file
from cse.training.run import TrainRequest

# Keys of a checkpoint's configuration, and of its settings, that are no part of a recipe.
RECORD_KEYS = {
    DIGEST, "format", "frozen_embeddings", "learned_numbers", "selection", "dev", "versions", "sha256", "reason",
}  # fmt: skip
DATA_KEYS = {"data", "examples", "dev_pairs", "held_out", "texts"}
METHOD_TEXTS = ("summary", "citation")  # of a method
POOLING_FIELDS = ("pooling", "training_pooling")  # fields that the setting `pooling` changes
RECIPE_KEYS = {"method", "supervised", "backbone", "storage", "settings"}

YAML_SUFFIXES = (".yaml", ".yml")
YAML_EXPONENT = re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+")  # 1e-4, which YAML 1.1 takes for a text


@dataclass(frozen=True)
class Recipe:
    """A method by name, a backbone and settings (`cse.methods.settings`); None is unspecified.

    `method` is the recorded method if the recipe is that of a checkpoint.
    """

    source: str
    name: str
    supervised: bool = False
    method: Method | None = None
    backbone: str | None = None
    storage: str | None = None
    precision: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def request(self, request: TrainRequest, backbone: str | None) -> TrainRequest:
        """The `request` completed by the recipe, on `backbone` if that is given."""
        changes = {name: value for name, value in request.settings.items() if value is not None}
        recorded = BACKBONE if self.backbone is None else self.backbone
        return replace(
            request, backbone=recorded if backbone is None else backbone,
            supervised=request.supervised or self.supervised, settings={**self.settings, **changes},
        )  # fmt: skip

    def check(self, method: Method) -> None:
        """Raise ValueError if `method` differs from the recorded method, apart from the fields that a run may set."""
        if self.method is None:
            return
        pooled = method.reading.pooling != self.method.reading.pooling
        headless = When.NEVER in (method.reading.head_when, self.method.reading.head_when)
        changed = (*(POOLING_FIELDS if pooled else ()), *(("head_when",) if headless else ()))
        set_by_run = {"prefix", "mlm_weight", *changed}
        before, now = to_json(self.method), to_json(method)
        names = [name for name in {**before, **now} if name not in (*METHOD_TEXTS, *set_by_run)]
        if odd := [name for name in names if before.get(name) != now.get(name)]:
            raise ValueError(
                f"{self.source}: its {self.name} differs from that of this version or backbone in {', '.join(odd)}; "
                "leave out the recipe and give its settings one by one"
            )


def read_recipe(source: str) -> Recipe:
    """The recipe in a JSON or YAML file, or of a checkpoint by its folder or bundled name.

    A file has `method` (a name) and, to replace the preset's, `supervised`, `backbone`, `storage` and `settings`; a
    checkpoint's record is such a file. Raises ArtefactError for a missing or damaged file, ValueError for
    unknown keys and invalid values.
    """
    path = Path(location(source))
    path = record_file(path) if path.is_dir() else path
    if not path.is_file():
        raise ArtefactError(f"no recipe {source!r}; give a JSON or YAML file, a checkpoint's folder or a bundled name")
    value = _read_file(path)
    _check_keys(source, value.keys() - RECIPE_KEYS - RECORD_KEYS, RECIPE_KEYS)
    settings = dict(_typed(source, value, "settings", dict) or {})
    for name in {"compile", "precision"} & settings.keys():  # YAML 1.1 takes yes and no for true and false
        if isinstance(settings[name], bool):
            settings[name] = "yes" if settings[name] else "no"
    precision = _typed(source, settings, "precision", str)
    settings.pop("precision", None)
    _check_keys(source, settings.keys() - SETTINGS.keys() - DATA_KEYS, {*SETTINGS, "precision"})
    kept = {name: setting for name, setting in settings.items() if name in SETTINGS}
    for name, setting in kept.items():
        try:
            SETTINGS[name].check(setting)
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from error
    method = value.get("method")
    if isinstance(method, str):
        name, recorded, supervised = method, None, bool(_typed(source, value, "supervised", bool))
    elif isinstance(method, dict):
        recorded = from_json(method)
        name, supervised = recorded.name, recorded.supervised
        kept |= {name: value for name, value in recorded.settings.items() if value is not None}
    else:
        raise ValueError(f'{source}: has no method; give its name as "method"')
    storage = _typed(source, value, "storage", str)
    return Recipe(source, name, supervised, recorded, _backbone(source, path, value), storage, precision, kept)


def chosen_recipe(method: str | None, recipe: Recipe | None) -> Recipe:
    """The recipe; if it is None, an empty one of the method. Raises ValueError for another method, and for neither."""
    if recipe is None:
        if method is None:
            raise ValueError(f"no `method`; choose from {', '.join(METHODS)}, or give a `recipe`")
        return Recipe("", method)
    if method not in (None, recipe.name):
        raise ValueError(f"{recipe.source} is a recipe of {recipe.name}, not of {method}; leave out `method`")
    return recipe


def _read_file(path: Path) -> dict[str, Any]:
    """The mapping in a JSON file, or a YAML one by its suffix, of plain values; 1e-4 is a number in both.

    Raises ArtefactError if the file is missing or damaged, or holds no mapping with names as keys.
    """
    if path.suffix.lower() not in YAML_SUFFIXES:
        return read_json(path)
    import yaml

    class Loader(yaml.SafeLoader):
        """PyYAML's safe loader, which makes plain values alone, with numbers as in JSON."""

    Loader.add_implicit_resolver("tag:yaml.org,2002:float", YAML_EXPONENT, list("-+0123456789"))
    try:
        value = yaml.load(path.read_text(encoding="utf-8"), Loader)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())[:160]
        raise ArtefactError(f"{path}: cannot be read as YAML ({reason}); correct it") from error
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise ArtefactError(f"{path}: holds no recipe; give names and values, such as method: simcse")
    return value


def _check_keys(source: str, unknown: set[Any], known: set[str]) -> None:
    if unknown:
        raise ValueError(
            f"{source}: unknown {', '.join(sorted(map(str, unknown)))}; a recipe has {', '.join(sorted(known))}"
        )


def _typed(source: str, value: Mapping[str, Any], name: str, kind: type) -> Any:
    """The entry `name` of `value`, or None. Raises ValueError unless it is of type `kind`."""
    entry = value.get(name)
    if entry is None or isinstance(entry, kind):
        return entry
    called = {str: "text", bool: "true or false", dict: "an object"}[kind]
    raise ValueError(f"{source}: {name} is {entry!r}; give {called}")


def _backbone(source: str, path: Path, recipe: Mapping[str, Any]) -> str | None:
    """The name or folder that opens the recorded backbone, with its commit on the hub."""
    value = recipe.get("backbone")
    if not isinstance(value, dict):
        return _typed(source, recipe, "backbone", str)
    origin = BackboneRecord(str(value.get("name")), value.get("revision"), "", _typed(source, value, "relative", str))
    name, revision = origin.place(path.parent), origin.revision
    return f"{name}@{revision}" if revision and "@" not in name else name
