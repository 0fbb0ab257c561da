"""The tree shows the method: rooms, their layers, no circle, one file per name."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import colocam

PACKAGE = Path(colocam.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

SERVES_A_USER = {
    "video",
    "boxes",
    "maps",
    "temporal",
    "inference",
    "corpus",
    "export",
    "corrections",
    "review",
    "models",
    "cams",
    "segment",
    "serve",
}
MEASURES = {"metrics", "evaluation"}
FORBIDDEN = {
    **{room: {"training", "demo", "cli", "evaluation", "metrics", "report"} for room in SERVES_A_USER},
    **{room: {"report", "review", "training", "demo", "cli"} for room in MEASURES},
    "integrations": {"training", "demo", "cli", "report"},
    "utils": {path.name for path in PACKAGE.iterdir() if path.is_dir()} - {"utils", "native"},
    "config": {
        "video",
        "data",
        "models",
        "cams",
        "losses",
        "training",
        "inference",
        "evaluation",
        "report",
        "demo",
        "cli",
    },
    "video": {"data", "config", "models", "cams", "inference", "training", "evaluation", "report", "demo", "cli"},
    "affinity": {"losses", "models", "cams", "data", "training", "demo", "cli"},
    "losses": {"training", "models", "cams", "data", "inference", "evaluation", "report", "demo", "cli"},
    "data": {"models", "cams", "training", "inference", "evaluation", "report", "export", "review", "demo", "cli"},
    "training": {"inference", "evaluation", "report", "review", "export", "demo", "cli"},
    "report": {"training", "demo", "cli"},
    "demo": {"cli"},
}


def name_of(path: Path) -> str:
    parts = ("colocam", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in FILES}


def room_of(module: str) -> str:
    """The folder of a module; metrics are a room of their own, below training and evaluation."""
    return "metrics" if module.startswith("colocam.evaluation.metrics") else [*module.split("."), "colocam"][1]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements within a node but for those that type checkers alone read; expressions hold none."""
    for block in ("body", "handlers", "orelse", "finalbody", "cases"):
        for inner in getattr(node, block, ()):
            yield inner
            if not (isinstance(inner, ast.If) and "TYPE_CHECKING" in ast.dump(inner.test)):
                yield from statements(inner)


def imports_of(path: Path) -> set[str]:
    """Modules of colocam that a file imports, anywhere in it but for type checkers alone."""
    found: set[str] = set()
    for node in statements(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in MODULES}
        elif isinstance(node, ast.ImportFrom) and (node.module or "") in MODULES:
            inside = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES.keys()
            found |= inside or {node.module}
    return found - {name_of(path)}


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    """What each module imports."""
    return {module: imports_of(path) for module, path in MODULES.items()}


def parents_of(module: str) -> set[str]:
    parts = module.split(".")
    return {".".join(parts[:end]) for end in range(1, len(parts))}


def test_no_import_circle(graph):
    """Also counts packages: importing ``a.b`` first runs ``a/__init__.py``."""
    with_packages = {
        module: others.union(*(parents_of(other) for other in others)) - parents_of(module) - {module}
        for module, others in graph.items()
    }
    TopologicalSorter(with_packages).prepare()  # raises CycleError with the circle in it


def test_layers(graph):
    wrong = [
        f"{module} imports {other}"
        for module, others in graph.items()
        for other in sorted(others)
        if room_of(other) in FORBIDDEN.get(room_of(module), set())
    ]
    assert wrong == []


def test_only_the_command_line_imports_the_demo(graph):
    rooms = {room_of(module) for module, others in graph.items() if any(room_of(other) == "demo" for other in others)}
    assert rooms <= {"demo", "cli"}


def test_no_module_imports_the_laboratory():
    """It is in no wheel: ``cli.measure_commands`` finds it in a clone, by its path."""
    wrong = [path for path in FILES if re.search(r"^\s*(from|import) lab\b", path.read_text("utf-8"), re.MULTILINE)]
    assert wrong == []


def test_studies_do_not_import_benchmarks():
    studies = (PACKAGE.parents[1] / "lab" / "study").glob("*.py")
    assert [path for path in studies if "lab.bench" in path.read_text(encoding="utf-8")] == []


def test_at_most_five_modules_at_the_top():
    top = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    assert top <= {"types", "errors", "run"}


def test_no_file_is_longer_than_400_lines():
    assert [path.name for path in FILES if len(path.read_text(encoding="utf-8").splitlines()) > 400] == []


def test_every_module_and_class_has_a_docstring():
    missing = [
        f"{name_of(path)}.{getattr(node, 'name', '')}"
        for path in FILES
        for node in (tree_of(path), *statements(tree_of(path)))
        if isinstance(node, ast.Module | ast.ClassDef)
        and not getattr(node, "name", "").startswith("_")
        and not ast.get_docstring(node)
    ]
    assert missing == []
