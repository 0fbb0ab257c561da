"""The version of the package, and its public names, also those that are imported on first use."""

import importlib.metadata
import importlib.util
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from colocam import __version__

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
PACKAGES = ["colocam", "colocam.inference", "colocam.report"]


def test_the_version_is_that_of_the_project_also_of_a_source_tree(monkeypatch):
    assert __version__ == tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["version"]

    def missing(_name):
        raise importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(importlib.metadata, "version", missing)
    spec = importlib.util.find_spec("colocam.utils.extras")
    again = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(again)
    assert again.__version__ == "0+source"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_there(package):
    module = import_module(package)
    for name in module.__all__:
        assert getattr(getattr(module, name), "__name__", name) == name
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nonsense'"):
        _ = module.nonsense


@pytest.mark.parametrize("package", PACKAGES)
def test_dir_shows_the_public_names_and_no_others(package):
    module = import_module(package)
    assert [name for name in dir(module) if not name.startswith("__")] == sorted(set(module.__all__) - {"__version__"})
