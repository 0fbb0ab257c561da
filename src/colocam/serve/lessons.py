"""Learn from the corrections of the page: ``colocam learn`` in a process of its own, so that the page stays quick."""

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from colocam.corrections import Correction, write_corrections
from colocam.errors import ColocamError

COMMAND = (sys.executable, "-c", "from colocam.cli import main; main()", "learn")
LINES = 40
"""Last lines of the output that the page shows."""


class Lessons:
    """At most one lesson at a time.

    Args:
        run: run folder of the model that learns.
        folder: gets a folder for each lesson: corrections, output and the new run.
        command: what to call; run, corrections, ``--out`` and the new run follow.
    """

    def __init__(self, run: Path, folder: Path, command: Sequence[str] = COMMAND) -> None:
        self._run = run
        self._folder = folder
        self._command = command
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._place: Path | None = None

    def start(self, corrections: Sequence[Correction]) -> None:
        """Begin a lesson."""
        if not self._run.is_dir():
            raise ColocamError("an ONNX file cannot learn: start the server with the run folder of 'colocam train'")
        if not corrections:
            raise ColocamError("nobody has corrected or accepted a frame yet, so there is nothing to learn")
        with self._lock:
            if self._child is not None and self._child.poll() is None:
                raise ColocamError("a lesson is running: wait until it ends")
            self._folder.mkdir(exist_ok=True)
            number = 1 + max((int(one.name) for one in self._folder.iterdir() if one.name.isdecimal()), default=0)
            self._place = self._folder / str(number)
            self._place.mkdir()
            file = write_corrections(self._place / "corrections.csv", corrections)
            arguments = [str(self._run), str(file), "--out", str(self._place / "run")]
            with (self._place / "output.txt").open("wb") as output:
                self._child = subprocess.Popen(  # noqa: S603 - our own command, without a shell
                    [*self._command, *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
                )

    def status(self) -> dict[str, str | list[str]]:
        """``state`` (never, learning, done or failed), ``lines`` of output, ``run``: the folder of the new model."""
        with self._lock:
            if self._child is None or self._place is None:
                return {"state": "never", "lines": [], "run": ""}
            code = self._child.poll()
            text = (self._place / "output.txt").read_text(encoding="utf-8", errors="replace")
            state = "learning" if code is None else "failed" if code else "done"
            new = f"{self._folder.name}/{self._place.name}/run"
            return {"state": state, "lines": text.splitlines()[-LINES:], "run": new if state == "done" else ""}

    def stop(self) -> None:
        """End a lesson that is running."""
        with self._lock:
            if self._child is not None and self._child.poll() is None:
                self._child.terminate()
                self._child.wait()
