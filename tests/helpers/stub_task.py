"""A task without a model, whose words say what happens to the process that does it."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from colocam.video.input import UnreadableError


@dataclass(frozen=True)
class StubTask:
    """Writes its words in capitals to ``folder``."""

    name: str
    words: str
    folder: Path

    def __call__(self, _worker):
        if self.words.startswith("signal "):
            os.kill(os.getpid(), signal.Signals[self.words.removeprefix("signal ")])
        if self.words == "exit":
            os._exit(7)
        if self.words == "hang":
            time.sleep(3600)
        if self.words == "once" and not (self.folder / "tried").exists():
            (self.folder / "tried").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if self.words == "unreadable":
            raise UnreadableError("cannot read it")
        if self.words == "full":
            raise OSError(28, "No space left on device")
        if self.words == "bug":
            raise ZeroDivisionError("division by zero")
        (self.folder / self.name).write_text(self.words.upper(), encoding="ascii")
        return {"written": True}
