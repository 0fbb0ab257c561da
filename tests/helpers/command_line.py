"""The command line within a test, and what surrounds it: absent packages, a full disk."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from colocam.cli import main
from colocam.utils.locks import temporary_file


@contextmanager
def fresh_modules(*absent: str) -> Iterator[None]:
    """Import colocam anew in the block, as a new process does, where the packages ``absent`` cannot be imported."""
    packages = {"colocam", *absent}

    def take() -> dict[str, ModuleType]:
        names = [name for name in sys.modules if name.partition(".")[0] in packages]
        return {name: sys.modules.pop(name) for name in names}

    before = take()
    sys.modules.update(dict.fromkeys(absent))  # None: importing it fails
    try:
        yield
    finally:
        take()
        sys.modules.update(before)


class Outcome(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """Its one line of error."""
        lines = [line for line in self.err.splitlines() if line.startswith("error: ")]
        assert len(lines) == 1, self.err
        assert self.code == 1
        assert "Traceback" not in self.err
        assert self.err.splitlines()[-1] == lines[0]
        return lines[0]


@pytest.fixture(name="fresh_modules", scope="session")
def fresh_modules_fixture():
    return fresh_modules


@pytest.fixture
def colocam(monkeypatch, capfd):
    """``colocam("train", …)`` runs the command line in this process and gives its :class:`Outcome`."""

    return lambda *arguments: _outcome(main, arguments, monkeypatch, capfd)


@pytest.fixture
def new_colocam(monkeypatch, capfd):
    """The same as a new process would run it, where the packages ``absent`` cannot be imported."""

    def run(*arguments: object, absent: Sequence[str] = ()) -> Outcome:
        with fresh_modules(*absent):
            return _outcome(import_module("colocam.cli").main, arguments, monkeypatch, capfd)

    return run


def _outcome(command, arguments, monkeypatch, capfd) -> Outcome:
    monkeypatch.setattr("sys.argv", ["colocam", *map(str, arguments)])
    capfd.readouterr()
    with pytest.raises(SystemExit) as stop:
        command()
    return Outcome(int(stop.value.code or 0), *capfd.readouterr())


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """``full_disk(name)``: writing a file of this name says what a full disk says; ``full_disk("")`` ends that."""

    def fill(full: str) -> None:
        @contextmanager
        def temporary(target: Path) -> Iterator[Path]:
            with temporary_file(target) as path:
                if target.name == full:
                    path.unlink()
                    path.symlink_to("/dev/full")
                yield path

        monkeypatch.setattr("colocam.utils.files.temporary_file", temporary)

    return fill
