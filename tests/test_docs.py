"""The documentation against the repository: links, files, commands, options, settings and imports that it names."""

import ast
import importlib
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import typer

from colocam.cli import app
from colocam.config import load_config
from tests.helpers.doc_pages import INLINE, NOTES, PAGES, ROOT, WRITTEN, Line, lines, name_of, prose, python_blocks

CLI = typer.main.get_command(app)
GUIDES = (ROOT / "docs" / "guide").rglob("*.md")
TOP_PAGES = [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md")]


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", prose(page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, *TOP_PAGES], ids=name_of)
def test_relative_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", INLINE.sub("", prose(page.read_text(encoding="utf-8")))):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_named_source_files_exist(page):
    text = page.read_text(encoding="utf-8")
    folders = (ROOT, ROOT / "src" / "colocam", ROOT / "tests")
    text = re.sub(r"`git show [^`]+`", "", text)
    for name in re.findall(r"`([a-z][\w./-]*/[\w.-]+\.(?:py|yaml))`", text) + re.findall(r"\bscripts/\w+\.py", text):
        assert any((folder / name).is_file() for folder in folders), name


SOURCES = [path for folder in ("src", "lab", "scripts", "tests") for path in (ROOT / folder).rglob("*.py")]
EXAMPLES = {"my_data.py", "my_cam.py", "my_import.py", "my_format.py", "my_choosers.py"}
"""Files that a reader writes."""


def named_scripts(text: str) -> set[str]:
    """Python files that a text names; a line with ``git show`` says how to get one that is gone."""
    kept = {name for line in text.splitlines() if "git show" in line for name in re.findall(r"(\w+\.py)\b", line)}
    return set(re.findall(r"(?<![\w*])(\w+\.py)\b", text)) - kept - EXAMPLES


@pytest.mark.parametrize("page", [*WRITTEN, *TOP_PAGES], ids=name_of)
def test_pages_name_no_script_that_is_gone(page):
    assert named_scripts(page.read_text(encoding="utf-8")) - {path.name for path in SOURCES} == set()


def test_scripts_of_the_page_name_no_module_that_is_gone():
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/colocam/serve/page").glob("*.js"))
    assert named_scripts(text) - {path.name for path in SOURCES} == set()


def test_all_pages_name_one_number_of_videos():
    """How many videos per tag a beginner needs."""
    text = " ".join("\n".join(page.read_text(encoding="utf-8") for page in WRITTEN[:1] + sorted(GUIDES)).split())
    counts = re.findall(
        r"(?i)\b(\w+) (?:varied |short |tagged )?(?:videos|clips)\W+(?:per|for each) (?:tag|class)\b", text
    )
    counts += re.findall(r"(?i)videos per tag; (\w+) is a good start", text)
    assert len(counts) > 3
    assert {count.lower() for count in counts} - {"two"} == {"ten"}


def linked_from(*pages: Path) -> set[Path]:
    return {
        (page.parent / target.partition("#")[0]).resolve()
        for page in pages
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    }


def test_every_page_is_linked():
    """Guides and method from the index of the documentation, notes from that of the notes, studies from any page."""
    index, notes = ROOT / "docs" / "README.md", NOTES / "README.md"
    assert sorted(map(name_of, {*WRITTEN} - linked_from(index, notes) - {index, ROOT / "README.md"})) == []
    assert notes in linked_from(index)
    assert sorted(map(name_of, {*PAGES[1:]} - linked_from(*PAGES))) == []


def test_pages_named_in_the_source_exist():
    written = [path for folder in ("src", "scripts", "lab") for path in (ROOT / folder).rglob("*.*")]
    files = [path for path in written if path.suffix in {".py", ".yaml"}]
    named = {
        name
        for path in files
        for name in re.findall(r"(?:docs|lab/notes)/[\w/-]+\.md", path.read_text(encoding="utf-8"))
    }
    assert named
    assert sorted(name for name in named if not (ROOT / name).is_file()) == []


def words(page: Path) -> int:
    """What a reader reads: the bars of tables do not count."""
    return sum(any(sign.isalnum() for sign in word) for word in page.read_text(encoding="utf-8").split())


@pytest.mark.parametrize(
    ("pattern", "most"), [("docs/guide/*.md", 700), ("docs/guide/*/*.md", 400), ("docs/method/*.md", 640)]
)
def test_pages_are_short(pattern, most):
    pages = sorted(ROOT.glob(pattern))
    assert pages
    assert {name_of(page): n for page in pages if (n := words(page)) > most} == {}


def test_the_documentation_is_short():
    """Notes are not read from the first page to the last."""
    assert sum(words(page) for page in PAGES if not page.is_relative_to(NOTES)) <= 28_000


WRAPPED = [page for page in PAGES if ROOT / "docs" in page.parents and len(page.relative_to(ROOT).parts) <= 3]
WRAPPED += [ROOT / "CONTRIBUTING.md", ROOT / "CODE_OF_CONDUCT.md"]


@pytest.mark.parametrize("page", WRAPPED, ids=name_of)
def test_prose_is_wrapped(page):
    most = 125 if page.name in {"faq.md", "README.md"} else 100
    long = [line for line in prose(page.read_text(encoding="utf-8")).splitlines() if len(line) > most]
    assert [line for line in long if not line.startswith(("|", "!", "    ")) and " " in line.strip()] == []


LINES = lines()


def command_of(line: Line) -> tuple[Any, list[str]]:
    command, rest = CLI, list(line.arguments)
    while hasattr(command, "get_command") and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        if name == "mine":
            pytest.skip("the data set of an extension")
        found = command.get_command(typer.Context(command), name)
        assert found is not None, f"colocam has no command {name}"
        command = found
    return command, rest


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line.page}: {' '.join(line.arguments)}")
def test_commands_and_options_exist(line):
    command, rest = command_of(line)
    if line.complete:
        command.make_context("colocam", rest)  # raises what the shell would print
        return
    options = {name for param in command.params for name in (*param.opts, *param.secondary_opts)} | {"--help"}
    assert [word for word in rest if re.match(r"--?[a-z]", word) and word not in options] == []


def test_every_command_is_documented():
    documented = {line.arguments[0] for line in LINES if line.arguments}
    assert sorted(set(CLI.commands) - documented) == []


def settings() -> list[str]:
    """What the pages give to ``--set``; notes also tell of settings that are gone, and extensions add their own."""
    pages = [page for page in WRITTEN if not name_of(page).startswith(("lab/notes", "docs/guide/extend"))]
    given = re.findall(
        r"--set (?:'([^']+)'|\"([^\"]+)\"|([^\s`)]+))", "\n".join(page.read_text(encoding="utf-8") for page in pages)
    )
    return [setting for setting in sorted({"".join(one) for one in given}) if not re.search("…|mine", setting)]


@pytest.mark.parametrize("setting", settings())
def test_settings_are_valid(setting):
    load_config("resnet50", None, [setting])


PUBLIC = runpy.run_path(str(ROOT / "scripts" / "docs_pages.py"))["PUBLIC"]
"""The modules of the API reference."""


@pytest.mark.parametrize("page", [page for page in WRITTEN if "```python" in page.read_text()], ids=name_of)
def test_python_examples_compile_and_import_what_is_public(page):
    for block in python_blocks(page):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("colocam"):
                module = importlib.import_module(node.module)
                assert [a.name for a in node.names if not hasattr(module, a.name)] == []
                assert node.module in PUBLIC


def test_at_most_40_modules_are_public():
    assert len(set(PUBLIC)) == len(PUBLIC) <= 40
    for name in PUBLIC:
        if not name.startswith("colocam.integrations."):  # extras
            assert importlib.import_module(name).__doc__
