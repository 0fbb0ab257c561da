"""One input: a command line and the files in its folder."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random

from tests.fuzz.mutate_bytes import mutated_bytes


@dataclass
class Case:
    """A command and what it may do.

    Attributes:
        argv: the command line, without the program.
        outputs: files and folders that may be written, relative to the current folder; existing files stay as they are.
        owned: folders whose files may also change, such as a run that is evaluated.
        stdin: file that is piped into the command.
        endless: whether the input may ask for more work than the time limit allows, as settings of a training do.
    """

    argv: list[str]
    outputs: list[str] = field(default_factory=list)
    owned: list[str] = field(default_factory=list)
    stdin: str | None = None
    endless: bool = False

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")


def load_case(path: Path) -> Case:
    return Case(**json.loads(path.read_text(encoding="utf-8")))


@dataclass
class Bench:
    """Where an input is put together: copies of the corpus in an empty folder."""

    random: Random
    corpus: Path
    folder: Path
    changed: list[str] = field(default_factory=list)

    def copy(self, name: str, to: str | None = None) -> str:
        """Copy a file or folder of the corpus; returns its name here."""
        source, target = self.corpus / name, self.folder / (to or name)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copy2(source, target)
        return to or name

    def names(self, folder: str) -> list[str]:
        """Files of a folder of the corpus, also of its subfolders, in order."""
        root = self.corpus / folder
        return sorted(str(path.relative_to(self.corpus)) for path in root.rglob("*") if path.is_file())

    def change(self, name: str, mutation: Callable[[bytes, Random], bytes]) -> str:
        """Mutate a file that was copied; one that is changed already may have lost its format."""
        path = self.folder / name
        mutation = mutated_bytes if name in self.changed else mutation
        path.write_bytes(mutation(path.read_bytes(), self.random))
        self.changed.append(name)
        return name

    def maybe(self, share: float) -> bool:
        return self.random.random() < share


def snapshot(folder: Path) -> dict[str, str]:
    """Digest of each file below ``folder``; of links and other kinds, what they are."""
    found: dict[str, str] = {}
    for parent, _, files in os.walk(folder):
        for name in files:
            path = Path(parent, name)
            if path.is_symlink():
                found[os.path.relpath(path, folder)] = f"link to {path.readlink()}"
            elif path.is_file():
                found[os.path.relpath(path, folder)] = hashlib.sha256(path.read_bytes()).hexdigest()
            else:
                found[os.path.relpath(path, folder)] = "other"
    return found
