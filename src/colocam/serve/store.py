"""The folder of a server, and in it the corrections as events in SQLite.

Events are only ever appended, and are on the disk before the page says that they are saved.
"""

import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from colocam.errors import ColocamError, first_line
from colocam.serve.marks import Change, History, history_of
from colocam.utils.files import explain_os_errors, parse_json, write_json
from colocam.utils.locks import locked
from colocam.utils.progress import say

MARKER = "colocam-serve.json"
FOLDERS = ("films", "uploads", "exports")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS films (id TEXT PRIMARY KEY, name TEXT NOT NULL, path TEXT NOT NULL, tag TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS events (
    film TEXT NOT NULL,
    version INTEGER NOT NULL,
    client TEXT NOT NULL UNIQUE,
    made TEXT NOT NULL,
    change TEXT NOT NULL,
    PRIMARY KEY (film, version)
);
CREATE TRIGGER IF NOT EXISTS events_stay BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are kept'); END;
CREATE TRIGGER IF NOT EXISTS events_are_final BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are kept'); END;
"""
_COLUMNS = {
    "films": ["id", "name", "path", "tag"],
    "contents": ["digest", "film"],  # of earlier folders; it is not read
    "events": ["film", "version", "client", "made", "change"],
}
_REMEDIES = {
    sqlite3.SQLITE_FULL: "the disk is full: free some space",
    sqlite3.SQLITE_IOERR: "the disk cannot be read or written: free some space, or check the disk",
    sqlite3.SQLITE_READONLY: "it cannot be written: check its permissions",
    sqlite3.SQLITE_BUSY: "another program has locked it: close that program",
    sqlite3.SQLITE_CORRUPT: "it is damaged: restore it from a copy",
}
"""By the low byte of SQLite's error code."""


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

    def remember(self, *, port: int | None = None, model: str | None = None) -> None:
        """Store the port, or the key of the model in use, for the next start."""
        self.port = self.port if port is None else port
        self.model = self.model if model is None else model
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
            self.remember()
        try:
            stored = parse_json(path.read_text(encoding="utf-8"))
            self.token, self.port = str(stored["token"]), int(stored["port"])
            self.model = str(stored["model"])
        except (ValueError, KeyError, TypeError):
            self.token = ""
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


class Event(NamedTuple):
    """A stored change.

    Attributes:
        version: of the film after this change, from 1.
        client: name that the page gave it; a change that is sent twice is stored once.
        made: time in UTC, ISO 8601.
        change: what was done.
    """

    version: int
    client: str
    made: str
    change: Change


class FilmRow(NamedTuple):
    """A film of the library: id, name on the page, path on this machine, tag ("": unknown)."""

    id: str
    name: str
    path: str
    tag: str


class ConflictError(ColocamError):
    """A change was made for an older version of the film.

    Attributes:
        events: what was stored since then.
    """

    status = 409

    def __init__(self, events: list[Event]) -> None:
        super().__init__("the film was changed on another page since this page last saw it")
        self.events = events


class NothingToUndoError(ColocamError):
    """There is no edit to undo or to redo."""

    status = 409


class UnknownVersionError(ColocamError):
    """A change was made for a version that the film does not have yet."""

    status = 404


class StoreError(ColocamError):
    """The database cannot be read or written; nothing was stored."""

    status = 507


class EventStore:
    """The database of a server; its methods may be called from any thread.

    Raises:
        StoreError: in any method: the disk is full, or the file is locked or damaged.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._name = path.name
        self._unreadable: set[tuple[str, int]] = set()
        try:
            self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            if any(_COLUMNS.get(table) != columns for table, columns in self._tables().items()):
                self._database.close()
                raise ColocamError(f"{path} is a database of another program, or of another version: move it away")
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=FULL")
            self._database.executescript(_SCHEMA)
        except sqlite3.DatabaseError as error:
            raise ColocamError(f"{path} is damaged ({error}): restore it from a copy, or move it away") from error

    def _tables(self) -> dict[str, list[str]]:
        """Columns of each table."""
        names = self._database.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        ).fetchall()
        columns = "SELECT name FROM pragma_table_info(?)"
        return {name: [row[0] for row in self._database.execute(columns, (name,))] for (name,) in names}

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock; what SQLite refuses becomes one line with a remedy."""
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                raise StoreError(f"{self._name}: {_REMEDIES.get(code, first_line(error))}") from error

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._database.close()

    def add_film(self, film: FilmRow) -> None:
        """Add a film, or store its new path, name and tag."""
        with self._locked():
            self._database.execute("INSERT OR REPLACE INTO films VALUES (?, ?, ?, ?)", film)

    def remove_film(self, film: str) -> None:
        """Remove a film from the library; its events are kept."""
        with self._locked():
            self._database.execute("DELETE FROM films WHERE id = ?", (film,))

    def films(self) -> list[FilmRow]:
        """All films, in the order in which they were added."""
        with self._locked():
            rows = self._database.execute("SELECT id, name, path, tag FROM films ORDER BY rowid").fetchall()
        return [FilmRow(*row) for row in rows]

    def events(self, film: str, after: int = 0) -> list[Event]:
        """The events of a film with versions above ``after``, in order."""
        with self._locked():
            return self._events(film, after)

    def history(self, film: str) -> tuple[int, History]:
        """The version of a film, and its edits."""
        events = self.events(film)
        return events[-1].version if events else 0, history_of(event.change for event in events)

    def append(self, film: str, client: str, version: int, change: Change) -> Event:
        """Store a change, on the disk when this returns.

        Args:
            film: id.
            client: unique name of the change; where it is stored already, the stored event is returned.
            version: of the film that the change was made for.
            change: what was done.

        Raises:
            ConflictError: the film has a newer version.
            UnknownVersionError: the film has only older versions.
            NothingToUndoError: there is no edit to undo or to redo.
        """
        with self._locked():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                event = self._append(film, client, version, change)
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:  # a full disk has ended it already
                    self._database.execute("ROLLBACK")
                raise
        return event

    def _append(self, film: str, client: str, version: int, change: Change) -> Event:
        row = self._database.execute(
            "SELECT version, client, made, change, film FROM events WHERE client = ?", (client,)
        ).fetchone()
        if row is not None:
            if row[4] != film:
                raise ColocamError(f"the change {client} is stored for another video already: send it with a new name")
            return self._event(film, row[:4])
        last = self._database.execute("SELECT COALESCE(MAX(version), 0) FROM events WHERE film = ?", (film,)).fetchone()
        if version > last[0]:
            raise UnknownVersionError(
                f"the change is for version {version} of the video, which has {last[0]}: reload the page"
            )
        if last[0] != version:
            raise ConflictError(self._events(film, version))
        if change.kind != "edit":
            history = history_of(event.change for event in self._events(film, 0))
            if not (history.done if change.kind == "undo" else history.undone):
                raise NothingToUndoError(f"there is nothing to {change.kind}")
        made = datetime.now(UTC).isoformat(timespec="milliseconds")
        text = change.model_dump_json(exclude_none=True)
        self._database.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?)", (film, version + 1, client, made, text))
        return Event(version + 1, client, made, change)

    def _events(self, film: str, after: int) -> list[Event]:
        rows = self._database.execute(
            "SELECT version, client, made, change FROM events WHERE film = ? AND version > ? ORDER BY version",
            (film, after),
        )
        return [self._event(film, row) for row in rows.fetchall()]

    def _event(self, film: str, row: tuple[int, str, str, str]) -> Event:
        """An event; a change that cannot be read is an edit of nothing, so that undo still counts right."""
        try:
            change = Change.model_validate_json(row[3])
        except ValidationError as error:
            if (film, row[0]) not in self._unreadable:
                self._unreadable.add((film, row[0]))
                problem = error.errors()[0]["msg"]
                say(f"warning: {self._name}: change {row[0]} of video {film} cannot be read and is left out: {problem}")
            change = Change.model_construct(kind="edit", actions=[])
        return Event(row[0], row[1], row[2], change)
