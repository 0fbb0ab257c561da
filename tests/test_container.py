"""The Dockerfile, which no engine builds here, and the notebook: what can be checked in a second.

``scripts/check_container.py`` runs the Dockerfile's steps in an empty environment, ``make notebook`` the notebook.
"""

import ast
import json
import re
import runpy
from pathlib import Path

import pytest
import typer

from colocam.cli import app

ROOT = Path(__file__).parents[1]
STEPS = runpy.run_path(str(ROOT / "scripts" / "check_container.py"))["steps"]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
CELLS = runpy.run_path(str(ROOT / "scripts" / "run_notebook.py"))["cells"]


@pytest.fixture
def dockerfile() -> list[tuple[str, str]]:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    return [(word, rest) for word, _, rest in (step.partition(" ") for step in STEPS(text))]


def test_the_default_command_is_one_that_colocam_takes(dockerfile):
    (entry,) = [json.loads(rest) for word, rest in dockerfile if word == "ENTRYPOINT"]
    (words,) = [json.loads(rest) for word, rest in dockerfile if word == "CMD"]
    assert entry == ["colocam"]
    command = typer.main.get_command(app).get_command(None, words[0])
    command.make_context(words[0], words[1:])  # raises what the shell would print


def test_what_is_copied_and_installed_is_there(dockerfile):
    (wheels,) = [rest for word, rest in dockerfile if word == "RUN" and " pip wheel " in rest]
    projects = [ROOT / word.removeprefix("/source").lstrip("/") for word in re.findall(r"/source\S*", wheels)]
    assert len(projects) == 2
    assert all((project / "pyproject.toml").is_file() for project in projects)
    copied = [rest.split()[0] for word, rest in dockerfile if word == "COPY" and not rest.startswith("--from")]
    assert all((ROOT / name).exists() for name in copied)


def test_the_server_does_not_run_as_root(dockerfile):
    words = [word for word, _ in dockerfile]
    assert words.index("USER") < words.index("CMD")


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_without_outputs_and_compile(notebook):
    content = json.loads(notebook.read_text(encoding="utf-8"))
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in content["cells"]}) == len(content["cells"])
    code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    assert len(code) > 3
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    for source in CELLS(notebook):
        ast.parse(source)  # no magic of Jupyter, so that any Python runs it


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_of_notebooks_lead_somewhere(notebook):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    text = "".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    targets = re.findall(r"\]\(([^)#]+)", text)
    assert targets
    assert [target for target in targets if not (notebook.parent / target).exists()] == []
