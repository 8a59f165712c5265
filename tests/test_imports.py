"""The import rules of the design, over every module: who may import whom, and nothing heavy until it is used."""

import ast
import functools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from conftest import ROOT

import cse

PACKAGES = ("cse", "index", "scripts")
OWNERS = {
    "gradio": {"cse.app"}, "typer": {"cse.commands"}, "faiss": {"index"}, "torch": {"cse"}, "transformers": {"cse"},
    "tokenizers": {"cse"}, "accelerate": {"cse"}, "safetensors": {"cse"}, "datasets": {"cse", "index"},
    "matplotlib": {"cse"}, "sklearn": {"cse"}, "scipy": {"cse"}, "argparse": {"cse.app"}, "pymilvus": {"index"},
}  # fmt: skip
HEAVY = (
    "torch", "transformers", "gradio", "faiss", "datasets", "sklearn", "scipy", "numpy", "matplotlib", "pyarrow",
    "tqdm",
)  # fmt: skip
# The departments of cse, each importing only those before it; `index` uses the first three alone.
FLOORS = (
    ("errors", "vectors", "versions"), ("methods", "storage"), ("text", "backbones", "encoding"),
    ("engines", "evaluation"), ("models",), ("training", "analysis", "judging"),
    ("runs", "pretraining", "publishing", "benchmark", "adapters", "grouping"), ("papers", "adaptation"), ("app",),
    ("commands",),
)  # fmt: skip
INDEX_MAY_USE = {"cse.errors", "cse.vectors", "cse.storage"}
EVALUATION_MAY_USE = {"cse.errors", "cse.vectors", "cse.storage", "cse.text"}
NO_TORCH = ("methods", "storage", "text", "evaluation")
NUMERICAL = {"numpy", "scipy", "sklearn"}


def sources() -> dict[str, Path]:
    """The path of each module by its name."""
    found = {"app": ROOT / "app.py"}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = sources()
NO_COMMANDS = {"cse.commands.cli", "cse.commands.options", "cse.commands.__main__"}
COMMANDS = sorted(name for name in MODULES if name.startswith("cse.commands.") and name not in NO_COMMANDS)


@functools.cache
def tree(module: str) -> ast.Module:
    """A module's syntax tree."""
    return ast.parse(MODULES[module].read_text())


def nodes(module: str, *, deferred: bool, types: bool) -> Iterator[ast.AST]:
    """The nodes of a module; function bodies if `deferred`, blocks that only type checkers run if `types`."""
    waiting: list[ast.AST] = [tree(module)]
    while waiting:
        node = waiting.pop()
        if not types and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        if not deferred and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        yield node
        waiting += ast.iter_child_nodes(node)


@functools.cache
def imports(module: str, *, deferred: bool = True, types: bool = False) -> frozenset[str]:
    """The imports of a module: modules of the project by their whole name, libraries by the first part of theirs."""
    found: set[str] = set()
    for node in nodes(module, deferred=deferred, types=types):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module
            assert not node.level, f"{module}: relative import"
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else node.module for name in whole}
    return frozenset(name if name in MODULES else name.partition(".")[0] for name in found)


def belongs(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def of_project(module: str, **options: bool) -> set[str]:
    return {name for name in imports(module, **options) if name in MODULES}


def libraries(module: str) -> set[str]:
    return {name for name in imports(module) if name not in MODULES and name not in sys.stdlib_module_names}


def test_every_module_is_read() -> None:
    assert len(MODULES) == 1 + sum(1 for package in PACKAGES for _ in (ROOT / package).rglob("*.py"))
    assert imports("cse.models.loading") >= {"cse.engines.torch_encoder", "cse.storage.hub"}
    assert "torch" in imports("cse.training.losses")
    assert {"cse.encoding.encoder", "cse.models.loading", "cse.runs.api"} == of_project("cse")  # in functions
    assert not of_project("cse", deferred=False)  # not at import, and not what only type checkers see


def test_a_library_is_imported_only_by_its_layer() -> None:
    layers = ("cse.app", "cse.commands")
    for library, allowed in OWNERS.items():
        users = {module for module in MODULES if library in imports(module)}
        assert users, library
        owners = {next((at for at in layers if belongs(module, at)), module.partition(".")[0]) for module in users}
        assert owners <= allowed, (library, users)


def test_no_score_waits_for_scipy_stats() -> None:
    """Its import takes a second of every command and app that scores."""
    assert not [name for name, path in MODULES.items() if "from scipy.stats" in path.read_text()]


@pytest.mark.parametrize("part", [str, lambda module: folder(module)], ids=["modules", "folders"])
def test_nothing_imports_itself_in_a_circle(part: Callable[[str], str]) -> None:
    """Imports in functions and for type checkers count too."""
    graph: dict[str, set[str]] = {}
    for module in MODULES:
        used = {part(name) for name in of_project(module, types=True)} - {part(module)}
        graph.setdefault(part(module), set()).update(used)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"imports in a circle: {' <- '.join(error.args[1])}")


def folder(module: str) -> str:
    """Return the folder that a module lies in, of the app the inner one; a module outside of a folder is its own."""
    return app_part(module) if belongs(module, "cse.app") else ".".join(module.split(".")[:2])


def department(module: str) -> str:
    """The folder of cse that a module lies in, or its own name."""
    return module.split(".")[1]


FLOOR = {name: number for number, floor in enumerate(FLOORS) for name in floor}


def test_a_department_imports_only_those_below_it() -> None:
    for module in sorted(module for module in MODULES if module.startswith("cse.")):
        own = department(module)
        for name in of_project(module, types=True):
            if name.startswith("cse.") and department(name) != own:
                assert FLOOR[department(name)] < FLOOR[own], f"{module} imports {name}"
            assert name != "cse" or own in ("app", "commands"), f"{module} imports what `cse` offers to users"


def test_the_index_uses_errors_vectors_and_storage_of_cse() -> None:
    used = {name for module in MODULES if belongs(module, "index") for name in of_project(module)}
    others = {name for name in used if not belongs(name, "index")}
    assert {".".join(name.split(".")[:2]) for name in others} <= INDEX_MAY_USE


def test_values_files_and_scores_are_made_without_torch() -> None:
    """Imports under a function count too, but for the reading and writing of tensors in `storage.weights`."""
    users = {module for module in MODULES if "torch" in imports(module)}
    users = {module for module in users if any(belongs(module, f"cse.{name}") for name in NO_TORCH)}
    assert users <= {"cse.storage.weights", "cse.storage.parts"}


def test_evaluation_is_a_leaf_that_knows_arrays_and_no_models() -> None:
    for module in sorted(module for module in MODULES if belongs(module, "cse.evaluation")):
        known = {name for name in of_project(module) if not belongs(name, "cse.evaluation")}
        assert {".".join(name.split(".")[:2]) for name in known} <= EVALUATION_MAY_USE, module
        assert libraries(module) <= NUMERICAL, module


def test_the_faces_in_scripts_and_app_import_one_module_each() -> None:
    faces = [module for module in MODULES if module.partition(".")[0] in ("scripts", "app")]
    for module in faces:
        wanted = {"cse.app.serving"} if module == "app" else {module.replace("scripts", "cse.commands")}
        assert of_project(module) == (wanted if module != "scripts" else set()), module
    assert {face for face in faces if face not in ("app", "scripts", "scripts.__main__")} == {
        command.replace("cse.commands", "scripts") for command in COMMANDS
    }
    for module in MODULES:
        if module not in faces:
            assert not of_project(module) & set(faces), module


def test_commands_hold_no_more_than_commands() -> None:
    """An `app` is the `main` of the file; what it calls stands in a package, not in a script."""
    for module in COMMANDS:
        body = tree(module).body
        made = [ast.unparse(node.value) for node in body if isinstance(node, ast.Assign) and targets(node) == ["app"]]
        assert made == ["command(main)"], module
        assert "main" in {node.name for node in body if isinstance(node, ast.FunctionDef)}, module
        shared = {name for name in of_project(module) if belongs(name, "cse.commands")} - {"cse.commands.options"}
        assert shared == {"cse.commands.cli"}, module


def targets(node: ast.stmt) -> list[str]:
    return [ast.unparse(target) for target in node.targets] if isinstance(node, ast.Assign) else []


def test_the_encoder_is_a_public_name_that_is_imported_at_its_first_use() -> None:
    from cse import Encoder, train
    from cse.encoding import encoder as home
    from cse.runs import api

    assert cse.Encoder is Encoder is home.Encoder
    assert cse.train is train is api.train
    assert set(cse.__all__) <= set(dir(cse))
    names: dict[str, object] = {}
    exec("from cse import *", names)
    assert {*cse.__all__, "load", "Encoder", "train"} <= names.keys()
    with pytest.raises(AttributeError, match="no attribute 'Decoder'"):
        cse.Decoder  # noqa: B018


# One process for all: what is loaded stays loaded, so the first module that loads something heavy is named.
WATCH = f"""
import importlib, json, sys
loaded = {{}}
def look(what):
    new = [name for name in {HEAVY} if name in sys.modules and name not in sum(loaded.values(), [])]
    if new:
        loaded[what] = new
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    look(name)
    if name.startswith("cse.commands.") and hasattr(module, "app"):
        try:
            module.app(["--help"])
        except SystemExit:
            look(name + " --help")
    elif name == "cse.app.serving":
        module.parser().format_help()
        look("app --help")
print(json.dumps(loaded))
"""


def test_importing_a_command_and_its_help_load_nothing_heavy() -> None:
    names = ["cse", "index", "cse.evaluation", *sorted(NO_COMMANDS), *COMMANDS, "cse.app.serving", "app"]
    done = subprocess.run([sys.executable, "-c", WATCH, *names], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == {}
    assert done.stdout.count("Usage:") >= 9


# The parts of the app, each importing only those before it; the server knows none of the others, only `page` and
# `serving` use it.
APP_PARTS = (
    "cse.app.validation", "cse.app.models", "cse.app.state", "cse.app.drawing", "cse.app.forms", "cse.app.corpus",
    "cse.app.duplicates", "cse.app.choice", "cse.app.scoreboard", "cse.app.sections", "cse.app.lessons",
    "cse.app.training", "cse.app.train_tab", "cse.app.export", "cse.app.api", "cse.app.opening", "cse.app.page",
    "cse.app.serving",
)  # fmt: skip
APP_SERVER = "cse.app.server"


def app_part(module: str) -> str:
    """Return the folder or file of the app that a module is in."""
    return ".".join(module.split(".")[:3])


def test_a_part_of_the_app_imports_only_those_below_it() -> None:
    for module in sorted(module for module in MODULES if module.startswith("cse.app.")):
        own = app_part(module)
        used = {app_part(name) for name in of_project(module, types=True) if name.startswith("cse.app.")} - {own}
        if own == APP_SERVER:
            below = {"cse.app.validation"}
        else:
            server = {APP_SERVER} if own in ("cse.app.page", "cse.app.serving") else set()
            below = {*APP_PARTS[: APP_PARTS.index(own)], *server}
        assert used <= below, module


def test_only_the_owner_of_command_lines_names_a_module_of_the_faces() -> None:
    """A wheel has no `scripts`, so a message that names `scripts.NAME` is wrong where cse is installed."""
    shown = {
        (module, node.value)
        for module in MODULES
        if module.partition(".")[0] in ("cse", "index")
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "scripts." in node.value
    }
    assert shown == set()
