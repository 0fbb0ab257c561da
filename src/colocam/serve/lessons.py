"""The models of a server, and how they learn from the corrections of the page.

There are that of the command, those beside it, and those that lessons made.

A lesson is ``colocam learn`` in a process of its own, so that the page stays quick. A quick lesson chooses thresholds
and presence alone, in this process, within about a second. Both start from the model of the command and use all
corrections, so that no error of an earlier lesson is inherited.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from colocam.config.card import Card
from colocam.errors import ColocamError
from colocam.inference.localizer import Localizer
from colocam.labels import Correction, write_corrections
from colocam.utils.digests import FileDigests
from colocam.utils.files import parse_json, write_json

COMMAND = (sys.executable, "-c", "from colocam.cli import main; main()", "learn")
LOADED = 2
"""Models that stay in memory."""
LINES = 40
"""Last lines of the output that the page shows."""
RUN, QUICK = "run", "quick"
"""Folders of the models of a lesson."""

QuickLearning = Callable[[Sequence[Correction]], Card]
"""Corrections → the card of the model of the command with other thresholds and presence."""
Learnt = Callable[[Path, str], None]
"""Called with the folder of a new model and its title."""


class UnknownModelError(ColocamError):
    """There is no model of this key."""

    status = 404


class ServedModel(NamedTuple):
    """A model.

    Attributes:
        key: 16 hexadecimal digits, a digest of its files.
        title: as the page shows it.
        path: run folder or ONNX file.
    """

    key: str
    title: str
    path: Path


class ModelList:
    """Models in the order in which they were added; may be called from any thread.

    Args:
        load: opens a run folder or an ONNX file.
        memory: file that digests are remembered in.
    """

    def __init__(self, load: Callable[[Path], Localizer], memory: Path) -> None:
        self._load = lru_cache(LOADED)(load)
        self._digests = FileDigests(memory)
        self._models: dict[str, ServedModel] = {}
        self._lock, self._load_lock = threading.Lock(), threading.Lock()

    def add(self, path: Path, title: str) -> ServedModel:
        """Add a model; one with the same files is there already."""
        files = sorted(path.glob("model.*")) if path.is_dir() else [path]
        with self._lock:
            try:
                digests = [self._digests.of_file(file) for file in files]
            except OSError as error:
                raise ColocamError(f"cannot read {path}: {error.strerror}") from error
            self._digests.save()
            key = hashlib.blake2b("".join(digests).encode(), digest_size=8).hexdigest()
            return self._models.setdefault(key, ServedModel(key, title, path))

    def all(self) -> list[ServedModel]:
        """All models."""
        with self._lock:
            return list(self._models.values())

    def get(self, key: str) -> ServedModel:
        """The model of a key."""
        with self._lock:
            found = self._models.get(key)
        if found is None:
            raise UnknownModelError("there is no model of this key: open the page again")
        return found

    def localizer(self, model: ServedModel) -> Localizer:
        """The opened model; the last ones are kept open."""
        with self._load_lock:
            return self._load(model.path)


class Lessons:
    """At most one lesson at a time.

    Args:
        run: run folder of the model that learns.
        folder: gets a folder for each lesson: corrections, output and the new models.
        learnt: called, in a thread, when a lesson has made a model.
        command: what to call instead of ``colocam learn``; run, corrections, ``--out`` and the new run follow.
        quick: opens the quick lesson for a run folder; None: there is none.
    """

    def __init__(
        self,
        run: Path,
        folder: Path,
        learnt: Learnt,
        command: Sequence[str] | None = None,
        quick: Callable[[Path], QuickLearning] | None = None,
    ) -> None:
        self._run = run
        self._folder = folder
        self._learnt = learnt
        self._command = command or COMMAND
        self._lock, self._quick_lock = threading.Lock(), threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._place: Path | None = None
        self._open_quick = quick
        self._quick: QuickLearning | None = None

    def earlier(self) -> Iterator[tuple[Path, str]]:
        """Models that lessons made, with their titles, oldest first."""
        for place in sorted(self._places(), key=lambda one: int(one.name)):
            for kind in (QUICK, RUN):
                if (place / kind / "model.json").is_file():
                    yield place / kind, title_of(place / kind)
            if (place / "output.txt").is_file():
                with self._lock:
                    self._place = place

    def start(self, corrections: Sequence[Correction]) -> None:
        """Begin a lesson."""
        self._check(corrections)
        with self._lock:
            if self._child is not None and self._child.poll() is None:
                raise ColocamError("a lesson is running: wait until it ends")
            self._place = place = self._new_place()
            file = write_corrections(place / "corrections.csv", corrections)
            arguments = [str(self._run), str(file), "--out", str(place / RUN)]
            with (place / "output.txt").open("wb") as output:
                self._child = subprocess.Popen(  # noqa: S603 - our own command, without a shell
                    [*self._command, *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
                )
            threading.Thread(target=self._wait, args=(self._child, place / RUN), daemon=True).start()

    def quick(self, corrections: Sequence[Correction]) -> tuple[Path, float]:
        """Choose thresholds and presence; the folder of the new model, and the seconds that it took."""
        self._check(corrections)
        if self._open_quick is None:
            raise ColocamError("this server cannot choose thresholds: start it with 'colocam serve'")
        with self._quick_lock:
            self._quick = self._quick or self._open_quick(self._run)
            begun = time.perf_counter()
            card = self._quick(corrections)
            with self._lock:
                folder = self._new_place() / QUICK
            folder.mkdir()
            write_corrections(folder.parent / "corrections.csv", corrections)
            _link(self._run / "model.safetensors", folder / "model.safetensors")
            write_json(folder / "model.json", card.model_dump(mode="json"))
            seconds = time.perf_counter() - begun
        self._learnt(folder, title_of(folder))
        return folder, seconds

    def status(self) -> dict[str, Any]:
        """The last lesson.

        Returns:
            ``state`` (never, learning, done or failed), ``lines`` of output, ``run``: the folder of the new model,
            ``stages``: how well it agrees with held-out corrections after each part, ``held_out``: their number.
        """
        with self._lock:
            place, code = self._place, None if self._child is None else self._child.poll()
            if place is None or not (place / "output.txt").is_file():
                return {"state": "never", "lines": [], "run": "", "stages": [], "held_out": 0}
            done = (place / RUN / "model.json").is_file()
            state = "learning" if self._child is not None and code is None else "done" if done else "failed"
            text = (place / "output.txt").read_text(encoding="utf-8", errors="replace")
            told = _report(place / RUN / "learning.json") if done else {}
            new = f"{self._folder.name}/{place.name}/{RUN}" if done else ""
            lines = text.splitlines()[-LINES:]
            held_out = told.get("held_out", {}).get("frames", 0)
            return {"state": state, "lines": lines, "run": new, "stages": told.get("stages", []), "held_out": held_out}

    def path_of(self, run: str) -> Path:
        """The folder that ``run`` of :meth:`status` means."""
        return self._folder.parent / run

    def stop(self) -> None:
        """End a lesson that is running."""
        with self._lock:
            if self._child is not None and self._child.poll() is None:
                self._child.terminate()
                self._child.wait()

    def _check(self, corrections: Sequence[Correction]) -> None:
        if not self._run.is_dir():
            raise ColocamError("an ONNX file cannot learn: start the server with the run folder of 'colocam train'")
        if not any(one.key for one in corrections):
            raise ColocamError("nobody has corrected or accepted a frame yet, so there is nothing to learn")

    def _places(self) -> list[Path]:
        return [one for one in self._folder.iterdir() if one.name.isdecimal()] if self._folder.is_dir() else []

    def _new_place(self) -> Path:
        place = self._folder / str(1 + max((int(one.name) for one in self._places()), default=0))
        place.mkdir(parents=True)
        return place

    def _wait(self, child: "subprocess.Popen[bytes]", made: Path) -> None:
        if child.wait() == 0 and (made / "model.json").is_file():
            self._learnt(made, title_of(made))


def title_of(model: Path) -> str:
    """Title of the model of a lesson."""
    number = model.parent.name
    return f"lesson {number}" if model.name == RUN else f"thresholds {number}"


def _report(path: Path) -> dict[str, Any]:
    try:
        told = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def _link(source: Path, target: Path) -> None:
    """Weights are large and never changed in place, so one copy on the disk is enough."""
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without hard links
        shutil.copyfile(source, target)
