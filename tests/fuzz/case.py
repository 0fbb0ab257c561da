"""One input: a command line and the files in its folder."""

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path


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
