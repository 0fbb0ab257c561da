"""Public names come from where they live, also those that are imported on first use."""

from importlib import import_module

import pytest

from colocam.utils.lazy import lazy_names

PACKAGES = ["colocam", "colocam.losses", "colocam.data", "colocam.inference", "colocam.report"]


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


def test_a_name_is_found_in_its_home_and_nowhere_else():
    find, _ = lazy_names("here", {"sqrt": "math"})
    assert find("sqrt") is import_module("math").sqrt
    with pytest.raises(AttributeError, match="module 'here' has no attribute 'cos'"):
        find("cos")
