"""A labeller without a model, whose films say what happens to the process that reads them."""

import hashlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from colocam.corpus.film_keys import film_key
from colocam.corpus.items import Done, Known
from colocam.corpus.part_files import count_part, durable, part_path
from colocam.inference.table import LocalizationTable
from colocam.types import Localization
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
        if words == "bug":
            raise ZeroDivisionError("division by zero")
        (self.folder / item.film.name).write_text(words.upper(), encoding="ascii")
        return Done(f"key of {item.film.name}", 1, 1)


class StubLabels:
    """In place of ``LabelSettings``: its labellers write parts that depend on the content of the films alone."""

    def __init__(self, run, labels, memory, *_):
        self.run, self.labels, self.memory = run, labels, memory

    def key(self):
        return "stub"

    def __call__(self, _):
        return self.label

    def label(self, item, report):
        content = item.film.path.read_bytes()
        key = film_key(self.key(), item.film, hashlib.blake2b(content, digest_size=32).hexdigest())
        report(Known(key))
        part = part_path(self.labels, key)
        with durable(part), LocalizationTable(part) as table:
            for frame, byte in enumerate(content):
                table.write(Localization(frame, frame / 25, "cat", byte / 255, None, 0.0, None))
        return Done(key, *count_part(part))
