"""The workflows of hosted CI, which cannot run here: valid files, steps that exist, actions that cannot change."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SCHEMAS = {
    "vendor.github-workflows": WORKFLOWS,
    "vendor.dependabot": [ROOT / ".github" / "dependabot.yml"],
    "vendor.github-issue-forms": sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml")),
}


def names_of(paths):
    return [path.name for path in paths]


def targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):(?!=)", makefile, re.MULTILINE))


def steps(path: Path) -> list[dict]:
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_are_valid_by_the_published_schema(schema):
    paths = SCHEMAS[schema]
    assert paths
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_each_step_is_a_target_of_the_makefile(path):
    commands = [step["run"] for step in steps(path) if "run" in step]
    assert commands
    for command in commands:
        words = re.fullmatch(r'make ([a-z-]+)( [A-Z]+="[^"]+")?', command)
        assert words, command
        assert words[1] in targets()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_to_a_commit(path):
    """A tag can be moved to other code; the line names it for readers."""
    used = re.findall(r"uses: (.+)", path.read_text(encoding="utf-8"))
    assert len(used) == sum("uses" in step for step in steps(path)) > 0
    assert [line for line in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


def test_the_local_run_names_targets_that_exist_and_that_ci_runs():
    local = set(re.findall(r"^\s*make ([a-z-]+)", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE))
    assert local <= targets()
    ci = {step["run"].split()[1] for step in steps(ROOT / ".github/workflows/ci.yml") if "run" in step}
    assert local | {"coverage", "docs"} <= ci


def test_ci_tests_every_python_that_is_promised():
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))["jobs"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lowest = project["requires-python"].removeprefix(">=")
    assert jobs["test"]["strategy"]["matrix"]["python"][0] == lowest
    assert len(jobs["test"]["strategy"]["matrix"]["os"]) == 2


def test_hooks_before_a_commit_run_programs_that_are_installed():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]
    programs = {hook["entry"].split()[0].removeprefix(".venv/bin/") for hook in hooks}
    assert programs == {"ruff", "mypy", "oxlint", "python"}
    lint = re.search(r"^lint:.*?\n\n", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[0]
    assert all(f"$(BIN)/{program}" in lint for program in programs - {"python"})


def test_coverage_has_a_bound():
    assert re.search(r"--cov-fail-under=9\d", (ROOT / "Makefile").read_text(encoding="utf-8"))
