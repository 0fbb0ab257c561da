"""The tree shows the method: rooms, their layers, no circle, one file per name."""

import ast
import json
import re
import runpy
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

import colocam
from tests.helpers.doc_pages import INLINE, PAGES, ROOT, prose, python_blocks
from tests.helpers.doc_pages import name_of as name_of_page

PACKAGE = Path(colocam.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

ABOVE = frozenset({"cli", "demo", "report", "evaluation", "metrics", "training"})
"""Rooms that what serves a user does not need."""
FORBIDDEN: dict[str, frozenset[str] | set[str]] = {
    **dict.fromkeys(("boxes", "maps", "temporal", "inference", "labels", "models", "cams", "segment", "serve"), ABOVE),
    **dict.fromkeys(("metrics", "evaluation", "integrations"), ABOVE - {"evaluation", "metrics"}),
    "report": {"cli", "demo", "training"},
    "training": {"cli", "demo", "report", "evaluation", "inference"},
    "data": {*ABOVE, "inference", "models", "cams"},
    "losses": {*ABOVE, "inference", "models", "cams", "data"},
    "config": {*ABOVE, "inference", "models", "cams", "losses", "data", "video"},
    "video": {*ABOVE, "inference", "models", "cams", "data", "config"},
    "demo": {"cli"},
    "utils": {path.name for path in PACKAGE.iterdir() if path.is_dir()} - {"utils", "native"},
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


def texts_of(tree: ast.Module) -> Iterator[str]:
    """The string literals of a file but for docstrings, which no code reads."""
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


def imports_of(tree: ast.Module) -> set[str]:
    """Modules of colocam that a file needs: by an import anywhere in it, also one that type checkers alone read.

    A literal that is the name of a module counts too, since ``import_module``, lazy names and child processes take
    names; ``module:function`` as well.
    """
    found = {text.partition(":")[0] for text in texts_of(tree)} & (MODULES.keys() - {"colocam"})
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in MODULES}
        elif isinstance(node, ast.ImportFrom) and (node.module or "") in MODULES:
            inside = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES.keys()
            found |= inside or {node.module}
    return found


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    """What each module imports."""
    return {module: imports_of(tree_of(path)) - {module} for module, path in MODULES.items()}


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


@pytest.mark.parametrize(
    "code",
    [
        "def late():\n    from colocam.data import truth",
        "if TYPE_CHECKING:\n    from colocam.data import truth",
        "import_module('colocam.data.truth')",
        "start('colocam.data.truth:main')",
        "find = lazy_names(__name__, {'Index': 'colocam.data.truth'})",
    ],
)
def test_an_import_is_found_however_it_is_made(code):
    assert imports_of(ast.parse(code)) == {"colocam.data.truth"}


def test_no_module_computes_the_name_of_another():
    """But for those that get it from a literal elsewhere, from the user, or from outside the package."""
    dynamic = {name_of(path) for path in FILES if "import_module(" in path.read_text("utf-8")}
    assert dynamic <= {
        "colocam.cli.measure_commands",
        "colocam.utils.child_processes",
        "colocam.utils.extensions",
        "colocam.utils.extras",
    }


def test_types_import_nothing_of_ours(graph):
    assert graph["colocam.types"] == set()


MOST_ROOMS, MOST_ARROWS = 27, 174
"""What there is; lower them with the tree."""
BACK = {("inference", "integrations")}
"""Arrows that close a circle of rooms, though of no modules; add none."""


def test_rooms_and_arrows(graph):
    """A room is a folder or a file at the top; an arrow leads from a room to another that it imports from."""
    arrows = {(room_of(module), room_of(other)) for module, others in graph.items() for other in others}
    arrows = {(room, other) for room, other in arrows if room != other}
    assert len({room_of(module) for module in graph}) <= MOST_ROOMS
    assert len(arrows) <= MOST_ARROWS
    arrows -= BACK
    below = {room: {other for start, other in arrows if start == room} for room, _ in arrows}
    TopologicalSorter(below).prepare()


def test_the_way_of_a_frame_is_short(graph):
    """Inference has at most 18 files on 9 floors; a module stands a floor above the highest of those it imports."""
    room = {module: {other for other in others if room_of(other) == "inference"} for module, others in graph.items()}
    inside = [module for module in TopologicalSorter(room).static_order() if room_of(module) == "inference"]
    floors: dict[str, int] = {}
    for module in inside:
        floors[module] = 1 + max((floors[other] for other in room[module]), default=0)
    modules = {module: floor for module, floor in floors.items() if module != "colocam.inference"}
    assert len(inside) <= 18
    assert max(modules.values()) <= 9


def test_layers(graph):
    rooms = {room_of(module) for module in graph}
    assert rooms >= FORBIDDEN.keys()
    assert rooms >= ABOVE
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


ADAPTERS = "colocam.integrations"
"""The one package whose ``__all__`` lists modules."""


def public_modules() -> set[str]:
    """The modules that the architecture page calls public, beside the packages with ``__all__``."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`(colocam(?:\.\w+)+)`", text.split("## What is public")[1].split("##")[0]))
    adapters = {f"{ADAPTERS}.{name}" for name in import_module(ADAPTERS).__all__}
    return (listed | adapters) - {ADAPTERS}


NO_MODULES = {"colocam.card", "colocam.extensions"}
"""An entry of the metadata of ONNX files, and the group of entry points."""


def is_public(module: str, name: str) -> bool:
    """Whether a name of a module is public; without a name, whether the module is."""
    if module in public_modules():
        return not name.startswith("_")
    listed = getattr(import_module(module), "__all__", ()) if module in MODULES else ()
    return name in listed if name else bool(listed)


PACKAGES = sorted({name_of(path.with_name("__init__.py")) for path in FILES})


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_says_what_it_is_for_and_what_is_public(package):
    documentation = ast.get_docstring(tree_of(MODULES[package])) or ""
    listed = import_module(package).__all__
    assert re.match(r"\S.*[.:]$", documentation.partition("\n")[0]), "its first line says what it is for"
    assert bool(listed) != bool(re.search(r"^Private\b", documentation, re.MULTILINE))
    assert [name for name in listed if name.startswith("_") and not name.startswith("__")] == []
    for name in listed:  # that of the integrations lists modules, which may need packages that are not installed
        assert f"{package}.{name}" in MODULES if package == ADAPTERS else hasattr(import_module(package), name)


def test_the_api_reference_has_what_is_public():
    public = {package for package in PACKAGES if import_module(package).__all__} | public_modules()
    documented = {*runpy.run_path(str(ROOT / "scripts" / "docs_pages.py"))["PUBLIC"]}
    assert documented == public - {ADAPTERS, "colocam.training"} | {"colocam.training.train"}


def examples() -> Iterator[tuple[str, str]]:
    """Place and code of each Python example of the documentation and its notebooks."""
    for page in PAGES:
        yield from ((name_of_page(page), block) for block in python_blocks(page))
    for path in sorted((ROOT / "docs").rglob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        yield from ((path.name, "".join(cell["source"])) for cell in cells if cell["cell_type"] == "code")


def used_names(code: str) -> Iterator[tuple[str, str]]:
    """Module and name of each import of colocam in code; the name is empty where a module is imported as a whole."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "colocam":
            yield from ((str(node.module), alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.partition(".")[0] == "colocam")


def mentioned_names(page: Path) -> Iterator[str]:
    """Names such as ``colocam.labels.FORMATS`` in the sentences of a page."""
    for code in INLINE.findall(prose(page.read_text(encoding="utf-8"))):
        yield from re.findall(r"^(colocam(?:\.\w+)+)(?:\(.*\))?$", code)


def test_examples_import_what_is_public():
    imports = [(place, *names) for place, code in examples() for names in used_names(code)]
    assert len(imports) > 70
    assert [text for text in imports if not is_public(*text[1:])] == []


def test_pages_mention_what_is_public():
    names = [(name_of_page(page), name) for page in PAGES for name in mentioned_names(page)]
    names = [(place, name) for place, name in names if name not in NO_MODULES]
    assert len(names) > 20
    assert [text for text in names if not is_public(text[1], "") and not is_public(*text[1].rsplit(".", 1))] == []


@pytest.mark.parametrize(
    "code",
    [
        "from colocam.inference.engine import run",
        "def late():\n    from colocam.inference.engine import (\n        run as go,\n    )",
        "import colocam.inference.engine as engine",
    ],
)
def test_an_import_of_what_is_private_is_found(code):
    ((module, name),) = used_names(code)
    assert module == "colocam.inference.engine"
    assert not is_public(module, name)


def test_what_is_not_listed_is_not_public():
    assert is_public("colocam.labels", "export")
    assert not is_public("colocam.labels.formats", "stored")
    assert not is_public("colocam.inference.engine", "Model")


def test_no_file_is_longer_than_400_lines():
    assert [path.name for path in FILES if len(path.read_text(encoding="utf-8").splitlines()) > 400] == []
