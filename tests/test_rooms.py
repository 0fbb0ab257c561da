"""The tests mirror the package: a reader of a room finds its tests without a search."""

import ast
import re
from pathlib import Path

import colocam

TESTS = Path(__file__).parent
PACKAGE = Path(colocam.__file__).parent
NO_ROOM = {
    "lab": "the laboratory stands beside the package",
    "gpu": "what runs differently on a GPU, of all rooms",
    "fuzz": "mutated inputs through every command",
    "helpers": "what tests of several rooms import",
    "stored": "files that earlier versions wrote",
}
"""Folders of the tests that name no room of the package, and why."""


def test_each_folder_of_tests_names_a_room():
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")} - {Path()}
    wrong = [
        str(folder) for folder in folders if folder.parts[0] not in NO_ROOM and not (PACKAGE / folder.parts[0]).is_dir()
    ]
    assert wrong == []


def test_each_module_has_a_test_of_its_name_or_names_its_tests():
    """But for the ``__init__`` of a room, which is what the tests of the room import."""
    missing = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name == "__init__.py":
            continue
        *rooms, name = path.relative_to(PACKAGE).parts
        room = TESTS.joinpath(*rooms[:1])
        mirrored = list(room.rglob(f"test_{name}") if rooms else room.glob(f"test_{name}"))
        _, marker, listed = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("Tests: ")
        files = re.findall(r"tests/[\w/]+\.py", listed)
        if not (mirrored or files) or (marker and not files):
            missing.append(f"{name}: add tests, or a line 'Tests: tests/ROOM/test_MODULE.py.' to its docstring")
        missing += [f"{name}: there is no {file}" for file in files if not (TESTS.parent / file).is_file()]
    assert missing == []


def test_helpers_are_imported_by_their_full_name():
    """A bare name would depend on the search path of whoever runs the tests."""
    names = {path.stem for path in (TESTS / "helpers").glob("*.py")} - {"__init__"}
    starts = tuple(f"{word} {name}{end}" for name in names for word in ("from", "import") for end in (" ", "\n"))
    wrong = [
        f"{path.relative_to(TESTS)}: {line.strip()}"
        for path in TESTS.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True)
        if line.lstrip().startswith(starts)
    ]
    assert wrong == []


def first_paragraph(room: Path) -> str:
    text = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8")))
    assert text, room
    return " ".join(text.split("\n\n")[0].split()).replace("``", "`")


def test_the_architecture_page_describes_each_room_as_its_package_does():
    page = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| \[`(\w+)/`\]\(\S+\) \| (.+) \|$", page, re.MULTILINE))
    rooms = {path.parent.name: path.parent for path in PACKAGE.glob("*/__init__.py")}
    assert rows == {name: first_paragraph(room) for name, room in rooms.items()}


def test_the_architecture_page_names_files_and_registers_that_exist():
    page = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    registers = re.findall(r"`([A-Z]+)` in `([\w/.]+)`", page)
    assert len(registers) > 5
    for name, file in registers:
        assert re.search(rf"\b{name}\b.*=", (PACKAGE / file).read_text(encoding="utf-8")), (name, file)
    folders = re.findall(r"`(tests/\w+/)`", page)
    assert len(folders) > 5
    assert [folder for folder in folders if not (PACKAGE.parents[1] / folder).is_dir()] == []
