"""Shorten an input that shows a fault, as long as it shows the same fault."""

import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from tests.fuzz.case import Case
from tests.fuzz.runner import Runner
from tests.fuzz.verdict import HANG, Verdict

TRIES = 60


def minimise(runner: Runner, number: int, verdict: Verdict, target: Path) -> None:
    """Write the shortened input to ``target``: ``case.json``, ``cwd`` and what the command printed."""
    whole = runner.folder / "minimise"
    shutil.rmtree(whole, ignore_errors=True)
    whole.mkdir(parents=True)
    case = _Shrinking(runner, verdict, whole, runner.build(number, whole)).shrink(8 if verdict.kind == HANG else TRIES)
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    shutil.copytree(whole, target / "cwd", symlinks=True, copy_function=_copy)
    case.save(target / "case.json")
    runner.once(_copier(whole, case))
    shutil.copy(runner.folder / "once" / "stderr", target / "stderr.txt")


class _Shrinking:
    """The files so far, and how many tries are left."""

    def __init__(self, runner: Runner, verdict: Verdict, folder: Path, case: Case) -> None:
        self.runner = runner
        self.verdict = verdict
        self.folder = folder
        self.case = case
        self.left = 0

    def shrink(self, tries: int) -> Case:
        """Leave out words of the command, then halves, quarters, … of the mutated files."""
        self.left = tries
        for place in reversed(range(1, len(self.case.argv))):
            for words in (2, 1):
                shorter = [*self.case.argv[:place], *self.case.argv[place + words :]]
                if len(shorter) < len(self.case.argv) and self._try(Case(**{**asdict(self.case), "argv": shorter})):
                    break
        for name in dict.fromkeys(self.case.changed):
            self._shrink_file(self.folder / name)
        return self.case

    def _shrink_file(self, path: Path) -> None:
        data = path.read_bytes() if path.is_file() else b""
        block = len(data) // 2
        while block >= 1 and self.left > 0:
            start = 0
            while start < len(data) and self.left > 0:
                shorter = data[:start] + data[start + block :]
                path.write_bytes(shorter)
                if self._try(self.case):
                    data = shorter
                else:
                    start += block
            block //= 2
        if path.exists():
            path.write_bytes(data)

    def _try(self, case: Case) -> bool:
        if self.left <= 0:
            return False
        self.left -= 1
        if self.runner.once(_copier(self.folder, case)) != self.verdict:
            return False
        self.case = case
        return True


def _copier(source: Path, case: Case) -> Callable[[Path], Case]:
    def prepare(folder: Path) -> Case:
        shutil.copytree(source, folder, symlinks=True, dirs_exist_ok=True, copy_function=_copy)
        return case

    return prepare


def _copy(source: str, target: str) -> None:
    """Copy a file; leave out pipes, which would block."""
    if Path(source).is_file() or Path(source).is_symlink():
        shutil.copy2(source, target, follow_symlinks=False)
