"""The import rule of the design: who may import whom, and nothing heavy until it is used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

OWNERS = {
    "gradio": ("app.py", "ui"), "typer": ("scripts",), "faiss": ("index",), "transformers": ("cse",),
    "matplotlib": ("cse",),
}  # fmt: skip
ORDER = ["errors", "hub", "templates", "methods", "backbone", "encoder"]


def imports(path: Path, top_level_only: bool = False) -> set[str]:
    """Modules a file imports; `TYPE_CHECKING` blocks are left out, function bodies too with `top_level_only`."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if top_level_only and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        waiting += ast.iter_child_nodes(node)
    return found


def sources() -> list[Path]:
    return [
        ROOT / "app.py",
        *(path for name in ("cse", "index", "scripts", "ui") for path in (ROOT / name).rglob("*.py")),
    ]


@pytest.mark.parametrize("library", OWNERS)
def test_a_heavy_library_is_imported_only_by_its_layer(library: str) -> None:
    for path in sources():
        place = path.relative_to(ROOT).parts[0]
        if library in {name.split(".")[0] for name in imports(path)}:
            assert place in OWNERS[library], path


def test_cse_and_index_never_import_each_other_nor_the_layers_above() -> None:
    for package, forbidden in (("cse", {"index", "scripts", "ui", "app"}), ("index", {"cse", "scripts", "ui", "app"})):
        for path in (ROOT / package).rglob("*.py"):
            assert not {name.split(".")[0] for name in imports(path)} & forbidden, path


def test_the_core_imports_downwards_and_leaves_import_no_core() -> None:
    for number, name in enumerate(ORDER):
        above = {f"cse.{other}" for other in ORDER[number + 1 :]}
        assert not imports(ROOT / "cse" / f"{name}.py", top_level_only=True) & above, name
    leaves = [ROOT / "cse" / f"{name}.py" for name in ("losses", "data", "tables")]
    leaves += (ROOT / "cse" / "evaluation").glob("*.py")
    for path in leaves:
        assert not imports(path) & {"cse.encoder", "cse.methods", "cse.checkpoint", "cse.training"}, path


def test_evaluation_is_a_leaf_that_knows_of_no_model() -> None:
    allowed = ("cse.data", "cse.errors", "cse.evaluation", "cse.files", "cse.vectors")
    for path in (ROOT / "cse" / "evaluation").glob("*.py"):
        ours = {name for name in imports(path) if name.split(".")[0] in ("cse", "index", "scripts", "ui")}
        assert all(name.startswith(allowed) for name in ours), path


MODULES = ["cse", "index", "app"]
MODULES += [
    f"scripts.{name}" for name in ("train", "build_index", "search", "evaluate", "search_templates", "reproduce")
]


@pytest.mark.parametrize("module", MODULES)
def test_importing_a_module_loads_nothing_heavy(module: str) -> None:
    heavy = ["torch", "transformers", "gradio", "faiss", "datasets", "sklearn", "scipy", "numpy", "matplotlib"]
    code = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
