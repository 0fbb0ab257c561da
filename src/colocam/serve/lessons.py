"""The models of a server, and how they learn from the corrections of the page.

They are the model of the command, those shown beside it, and those that lessons made.

A lesson is ``colocam learn`` in a process of its own, so that the page stays quick. A quick lesson chooses thresholds
and presence alone, in this process, within about a second. Both start from the model of the command and use all
corrections, so that no error of an earlier lesson is inherited.
"""

import hashlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from colocam.config.card import Card
from colocam.errors import ColocamError
from colocam.inference.localizer import Localizer
from colocam.labels import Correction as FrameCorrection
from colocam.labels import write_corrections
from colocam.serve.guard import RefusalError
from colocam.utils.digests import FileDigests
from colocam.utils.files import link, parse_json, write_json

COMMAND = (sys.executable, "-c", "from colocam.cli import main; main()", "learn")
LOADED = 2
"""Models that stay in memory."""
SECONDS_TO_END = 10.0
"""For a lesson that is cancelled; then it is killed."""
LINES = 40
"""Last lines of the output that the page shows."""
RUN, QUICK = "run", "quick"
"""Folders of the models of a lesson."""
CORRECTIONS, OUTPUT = "corrections.csv", "output.txt"

QuickLearning = Callable[[Sequence[FrameCorrection]], Card]
"""Corrections → the card of the model of the command with other thresholds and presence."""


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


def titles(runs: Sequence[Path]) -> list[str]:
    """A title for each run: its name, or the last two parts of its path where others have the same name."""
    names = [run.resolve().name for run in runs]
    return [
        name if names.count(name) == 1 else "/".join(run.resolve().parts[-2:])
        for name, run in zip(names, runs, strict=True)
    ]


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
        """Add a model, unless one with the same files is there already."""
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
            if (model := self._models.get(key)) is None:
                raise RefusalError(404, "there is no model with this key: open the page again")
            return model

    def localizer(self, model: ServedModel) -> Localizer:
        """The opened model; the last ones are kept open."""
        with self._load_lock:
            return self._load(model.path)


class Lessons:
    """At most one lesson at a time.

    Args:
        run: run folder of the model that learns, or its ONNX file.
        folder: gets a folder for each lesson: corrections, output and the new models.
        learned: called, in a thread, with the folder of the model that a lesson has made and its title.
        quick: opens the quick lesson for a run folder.
    """

    def __init__(
        self,
        run: Path,
        folder: Path,
        learned: Callable[[Path, str], None],
        quick: Callable[[Path], QuickLearning],
    ) -> None:
        self._run, self._folder, self._learned = run_of(run), folder, learned
        self._lock, self._quick_lock = threading.Lock(), threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._place: Path | None = None
        self._stopped = False
        self._open_quick = cache(quick)

    def earlier(self) -> Iterator[tuple[Path, str]]:
        """Models that lessons made, with their titles, oldest first."""
        for place in sorted(self._places(), key=lambda place: int(place.name)):
            for kind in (QUICK, RUN):
                if (place / kind / "model.json").is_file():
                    yield place / kind, title_of(place / kind)
            if (place / OUTPUT).is_file():
                self._place = place

    def start(self, corrections: Sequence[FrameCorrection]) -> None:
        """Begin a lesson."""
        self._check(corrections)
        with self._lock:
            if self._child is not None and self._child.poll() is None:
                raise ColocamError("a lesson is running: wait until it ends")
            place = self._new_place(corrections)
            arguments = [str(self._run), str(place / CORRECTIONS), "--out", str(place / RUN)]
            with (place / OUTPUT).open("wb") as output:
                self._child = subprocess.Popen(  # noqa: S603 - our own command, without a shell
                    [*COMMAND, *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
                )
            self._place, self._stopped = place, False
            threading.Thread(target=self._wait, args=(self._child, place / RUN), daemon=True).start()

    def quick(self, corrections: Sequence[FrameCorrection]) -> tuple[Path, float]:
        """Choose thresholds and presence; the folder of the new model, and the seconds that it took."""
        self._check(corrections)
        with self._quick_lock:
            learn = self._open_quick(self._run)
            begun = time.perf_counter()
            card = learn(corrections)
            with self._lock:
                folder = self._new_place(corrections) / QUICK
            folder.mkdir()
            # Weights are large and never changed in place, so one copy on the disk is enough.
            link(self._run / "model.safetensors", folder / "model.safetensors")
            write_json(folder / "model.json", card.model_dump(mode="json"))
            return folder, time.perf_counter() - begun

    def status(self) -> dict[str, Any]:
        """The last lesson.

        Returns:
            ``state`` (never, learning, done, cancelled or failed), ``lines`` of output, ``path``: the new model or
            None, ``stages``: how well it agrees with held-out corrections after each part, ``held_out``: their number,
            without interpolated frames, ``proof``: whether it is better, see
            :class:`colocam.training.learning.proof.Proof`, or None if the lesson does not say.
        """
        with self._lock:
            place, learning = self._place, self._child is not None and self._child.poll() is None
        if place is None:
            return {"state": "never", "lines": [], "path": None, "stages": [], "held_out": 0, "proof": None}
        done = (place / RUN / "model.json").is_file()
        report = _report(place / RUN / "learning.json") if done else {}
        if learning:
            state = "learning"
        elif done:
            state = "done"
        else:
            state = "cancelled" if self._stopped else "failed"
        return {
            "state": state,
            "lines": (place / OUTPUT).read_text(encoding="utf-8", errors="replace").splitlines()[-LINES:],
            "path": place / RUN if done else None,
            "stages": report.get("stages", []),
            "held_out": report.get("held_out", {}).get("frames", 0),
            "proof": report.get("proof"),
        }

    def stop(self) -> None:
        """End a lesson that is running; what it has learned so far is not used."""
        with self._lock:
            child = self._child
            if child is None or child.poll() is not None:
                return
            self._stopped = True
            child.terminate()
        try:
            child.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            child.kill()

    @property
    def refusal(self) -> str:
        """Why this model cannot learn, and the remedy; "": it can. The page says so from the start."""
        if not self._run.is_dir():
            return "an ONNX file cannot learn: start the server with the run folder of 'colocam train'"
        if find_spec("torch") is None:
            return "learning needs PyTorch, which is not installed: pip install 'colocam[train]'"
        return ""

    def _check(self, corrections: Sequence[FrameCorrection]) -> None:
        if self.refusal:
            raise ColocamError(self.refusal)
        if not any(correction.key for correction in corrections):
            raise ColocamError("nobody has corrected or accepted a frame yet, so there is nothing to learn from")

    def _places(self) -> list[Path]:
        return [place for place in self._folder.iterdir() if place.name.isdecimal()] if self._folder.is_dir() else []

    def _new_place(self, corrections: Sequence[FrameCorrection]) -> Path:
        last = max((int(place.name) for place in self._places()), default=0)
        place = self._folder / str(last + 1)
        place.mkdir(parents=True)
        write_corrections(place / CORRECTIONS, corrections)
        return place

    def _wait(self, child: "subprocess.Popen[bytes]", made: Path) -> None:
        if child.wait() == 0 and (made / "model.json").is_file():
            self._learned(made, title_of(made))


def run_of(model: Path) -> Path:
    """The run folder around an ONNX file, which a ready model has; otherwise the model itself."""
    needed = ("config.yaml", "data.json", "model.json", "model.safetensors")
    beside = model.is_file() and model.stem == model.parent.name
    return model.parent if beside and all((model.parent / name).is_file() for name in needed) else model


def title_of(model: Path) -> str:
    """Title of the model of a lesson."""
    return f"{'lesson' if model.name == RUN else 'thresholds'} {model.parent.name}"


def _report(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        return dict(parse_json(path.read_text(encoding="utf-8")))
    return {}
