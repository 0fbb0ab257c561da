"""The folder of a server: where corrections, tables, proxies and uploads are."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from colocam.errors import ColocamError
from colocam.utils.files import explain_os_errors, parse_json, write_json
from colocam.utils.locks import locked

MARKER = "colocam-serve.json"
FOLDERS = ("films", "uploads", "exports")


class Workspace:
    """Paths in the folder of a server, and what it remembers from one start to the next.

    Attributes:
        root: the folder.
        token: secret that writing needs; it stays the same, so that a page survives a restart of the server.
        port: port of the last start; 0: never started.
        model: key of the model in use; "": that of the command.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.token = secrets.token_urlsafe(24)
        self.port = 0
        self.model = ""

    @property
    def database(self) -> Path:
        """The events: what people corrected."""
        return self.root / "corrections.sqlite"

    @property
    def uploads(self) -> Path:
        """Films that were dropped on the page, under generated names."""
        return self.root / "uploads"

    @property
    def exports(self) -> Path:
        """ZIP archives for download."""
        return self.root / "exports"

    def film(self, film: str, ending: str) -> Path:
        """A file that was computed from a film."""
        return self.root / "films" / f"{film}.{ending}"

    def remember(self, port: int) -> None:
        """Store the port for the next start."""
        self.port = port
        self._store()

    def use(self, model: str) -> None:
        """Store the key of the model in use for the next start."""
        self.model = model
        self._store()

    def _store(self) -> None:
        path = self.root / MARKER
        write_json(path, {"format": 1, "token": self.token, "port": self.port, "model": self.model})
        path.chmod(0o600)

    def _load(self) -> None:
        path = self.root / MARKER
        if not path.is_file():
            if any(not entry.name.startswith(".") for entry in self.root.iterdir()):
                raise ColocamError(
                    f"{self.root} is not empty and not a folder of 'colocam serve': choose another `out`"
                )
            self._store()
        try:
            stored = parse_json(path.read_text(encoding="utf-8"))
            self.token, self.port = str(stored["token"]), int(stored["port"])
            self.model = str(stored.get("model", ""))  # folders of the first version have none
        except (ValueError, KeyError, TypeError) as error:
            raise ColocamError(f"{path} is damaged: delete it; corrections are in another file") from error
        if len(self.token) < 16:
            raise ColocamError(f"{path} is damaged: delete it; corrections are in another file")


@contextmanager
def open_workspace(root: Path) -> Iterator[Workspace]:
    """Open or create the folder of a server and hold its lock: a second server on the same folder is refused."""
    with explain_os_errors(root):
        root.mkdir(parents=True, exist_ok=True)
        with locked(root):
            workspace = Workspace(root)
            workspace._load()  # noqa: SLF001 - only under the lock
            for folder in FOLDERS:
                (root / folder).mkdir(exist_ok=True)
            yield workspace
