"""A labeller without a model, whose films say what happens to the process that reads them."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from colocam.corpus.items import Done, Known
from colocam.video.input import UnreadableError


@dataclass(frozen=True)
class StubSettings:
    """Makes labellers that write the content of a film in capitals to ``folder``."""

    folder: Path

    def __call__(self, _):
        return self.label

    def label(self, item, report):
        words = item.film.path.read_text(encoding="ascii")
        report(Known(f"key of {item.film.name}"))
        if words.startswith("signal "):
            os.kill(os.getpid(), signal.Signals[words.removeprefix("signal ")])
        if words == "exit":
            os._exit(7)
        if words == "hang":
            time.sleep(3600)
        if words == "once" and not (self.folder / "tried").exists():
            (self.folder / "tried").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if words == "unreadable":
            raise UnreadableError("cannot read it")
        if words == "threads":
            words = f"{os.environ['OMP_NUM_THREADS']} thread"
        if words == "bug":
            raise ZeroDivisionError("division by zero")
        (self.folder / item.film.name).write_text(words.upper(), encoding="ascii")
        return Done(f"key of {item.film.name}", 1, 1)
