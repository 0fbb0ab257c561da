"""Folders that all workers of a test run share."""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from coverage import Coverage


@contextmanager
def untraced() -> Iterator[None]:
    """Pause coverage: it makes PyTorch's exporter twice as slow."""
    stopped = []
    while (traced := Coverage.current()) is not None:  # pytest-cov starts two in a worker
        traced.stop()
        stopped.append(traced)
    try:
        yield
    finally:
        for traced in reversed(stopped):
            traced.start()


@pytest.fixture(name="untraced", scope="session")
def untraced_fixture():
    return untraced


@pytest.fixture(scope="session")
def shared(tmp_path_factory) -> Callable[[str, Callable[[Path], object]], Path]:
    """``shared(name, build)`` is a folder for all workers; the first that asks for it calls ``build(folder)``.

    Read only. What coverage would see in ``build`` is not counted.
    """
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent

    def get(name: str, build: Callable[[Path], object]) -> Path:
        folder, built = root / name, root / f"{name}-built"
        with (root / f"{name}-lock").open("w") as lock, untraced():
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not built.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                build(folder)
                built.touch()
        return folder

    return get
