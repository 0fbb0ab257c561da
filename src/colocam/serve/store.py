"""The folder of a server: its settings, and the corrections as events in SQLite.

Events are only ever appended, and are on the disk before the page says that they are saved.
"""

import hashlib
import json
import os
import secrets
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from colocam.errors import ColocamError, first_line
from colocam.inference.localizer import Localizer
from colocam.serve.guard import RefusalError
from colocam.serve.marks import Correction, History, history_of
from colocam.serve.video_data import Video
from colocam.utils.files import explain_os_errors, parse_json, publish
from colocam.utils.locks import locked
from colocam.utils.progress import say

MARKER = "colocam-serve.json"
FOLDERS = ("videos", "uploads", "exports")
OLD_SETTINGS = 2
"""Earlier settings of a video whose results stay on the disk, for a person who goes back to them."""
REMEMBERED = 100_000
"""Actions of the histories that stay in memory, those of the video that was asked for last in any case."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS videos (id TEXT PRIMARY KEY, name TEXT NOT NULL, path TEXT NOT NULL, tag TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS events (
    video TEXT NOT NULL,
    version INTEGER NOT NULL,
    client TEXT NOT NULL UNIQUE,
    made TEXT NOT NULL,
    change TEXT NOT NULL,
    PRIMARY KEY (video, version)
);
CREATE TRIGGER IF NOT EXISTS events_stay BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are kept'); END;
CREATE TRIGGER IF NOT EXISTS events_are_final BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are kept'); END;
"""
_COLUMNS = {"videos": "id,name,path,tag", "events": "video,version,client,made,change"}
_OLD_COLUMNS = {"films": "id,name,path,tag", "events": "film,version,client,made,change"}
_RENAME = "ALTER TABLE films RENAME TO videos; ALTER TABLE events RENAME COLUMN film TO video;"
"""Up to version 0.2.0 tables and the folder of results had the word *film*."""
_REMEDIES = {
    sqlite3.SQLITE_FULL: "the disk is full: free some space",
    sqlite3.SQLITE_IOERR: "the disk cannot be read or written: free some space, or check the disk",
    sqlite3.SQLITE_READONLY: "it cannot be written: check its permissions",
    sqlite3.SQLITE_BUSY: "another program has locked it: close that program",
    sqlite3.SQLITE_CORRUPT: "it is damaged: restore it from a copy",
}
"""By the low byte of SQLite's error code."""

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Wanted(NamedTuple):
    """How to localize in one video.

    Attributes:
        tag: class that the video shows; None: the classifier finds it.
        presence: no box where the probability of presence is below this; None: all boxes.
        threshold: of the maps, relative to their maxima; None: that of the model.
        instances: find every object, not only one a frame.
        segmenter: key of the segmenter, "": none; ``looks``: None: as the model says; ``prior``: its key, "": none.
    """

    tag: str | None = None
    presence: float | None = None
    threshold: float | None = None
    instances: bool = False
    segmenter: str = ""
    looks: int | None = None
    prior: str = ""

    def key(self, model: str) -> str:
        """Stands for the results of a model with these settings: the key of the model alone, where all are defaults."""
        values = json.dumps(self[: 7 if self.prior else 5 + bool(self.looks)])  # the five of 0.2.0 keep their key
        return model if self == Wanted() else f"{model}-{hashlib.blake2b(values.encode(), digest_size=6).hexdigest()}"


class Settings(BaseModel):
    """Settings of all videos, see :class:`Wanted`; ``refine``: use the segmenter, where the server has one."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    presence: Share | None = None
    threshold: Share | None = None
    instances: bool = False
    refine: bool = True

    def of(self, tag: str, segmenter: str = "") -> Wanted:
        """The settings for a video of a class; "": nobody set one. ``segmenter``: key of that of the server."""
        used = segmenter if self.refine else ""
        return Wanted(tag or None, self.presence, self.threshold, self.instances, used)


def with_wanted(localizer: Localizer, wanted: Wanted) -> Localizer:
    """A model with these settings; what it cannot do is left out, as they may have been chosen for another model."""
    tag = wanted.tag if wanted.tag in localizer.tags else None
    presence = None if localizer.card.presence is None else wanted.presence
    if not wanted.segmenter:
        localizer = localizer.without_segmenter()
    wanted = wanted._replace(tag=tag, presence=presence, segmenter="", prior="")
    chosen = {name: value for name, value in wanted._asdict().items() if name not in {"segmenter", "prior"}}
    return localizer if wanted == Wanted() else localizer.with_options(**chosen)


class Workspace(BaseModel):
    """Paths in the folder of a server, and what it remembers from one start to the next.

    Attributes:
        root: the folder.
        token: secret that everything needs; it stays the same, so that a page survives a restart of the server.
        port: port of the last start; 0: never started.
        model: key of the model in use; "": that of the command.
        settings: of all videos.
        tags: class that a person set for a video, by its id.
        classes: that people added to those of the model.
    """

    root: Annotated[Path, Field(exclude=True)]
    format: int = 1
    token: str = Field(default_factory=partial(secrets.token_urlsafe, 24), min_length=16)
    port: int = 0
    model: str = ""
    settings: Settings = Settings()
    tags: dict[str, str] = {}
    classes: list[str] = []

    @property
    def database(self) -> Path:
        """The events: what people corrected."""
        return self.root / "corrections.sqlite"

    @property
    def uploads(self) -> Path:
        """Videos that were dropped on the page, under generated names."""
        return self.root / "uploads"

    @property
    def exports(self) -> Path:
        """ZIP archives for download."""
        return self.root / "exports"

    def video(self, video: str, ending: str) -> Path:
        """A file that was computed from a video."""
        return self.root / "videos" / f"{video}.{ending}"

    def forget(self, video: str, model: str, used: Collection[str]) -> list[str]:
        """Delete what a model found in a video with old settings, but for the last :data:`OLD_SETTINGS`; their keys.

        Args:
            video: id of the video.
            model: key of the model.
            used: keys of the results that stay in any case.
        """
        stay = {self.video(video, f"{key}.csv") for key in used}
        tables = [table for table in self.root.glob(f"videos/{video}.{model}*.csv") if table not in stay]
        old = sorted(tables, key=lambda table: table.stat().st_mtime_ns)[:-OLD_SETTINGS]
        for table in old:
            for file in table.parent.glob(f"{table.stem}.*"):  # table, maps and description
                file.unlink(missing_ok=True)
        return [table.stem.removeprefix(f"{video}.") for table in old]

    def save(self) -> None:
        """Store this for the next start."""
        draft = self.root / f".{MARKER}"
        # Nobody else may read the token, not even while it is being written.
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(self.model_dump_json(indent=2) + "\n")
        publish(draft, self.root / MARKER)


@contextmanager
def open_workspace(root: Path) -> Iterator[Workspace]:
    """Open or create the folder of a server and hold its lock: a second server on the same folder is refused."""
    with explain_os_errors(root):
        root.mkdir(parents=True, exist_ok=True)
        with locked(root):
            workspace = _stored(root)
            if (root / "films").is_dir() and not (root / "videos").exists():
                (root / "films").rename(root / "videos")
            for folder in FOLDERS:
                (root / folder).mkdir(exist_ok=True)
            yield workspace


def _stored(root: Path) -> Workspace:
    path = root / MARKER
    if not path.is_file():
        if any(not entry.name.startswith(".") for entry in root.iterdir()):
            raise ColocamError(f"{root} is not empty, and not a folder of 'colocam serve': choose another `out`")
        new = Workspace(root=root)
        new.save()
        return new
    try:
        return Workspace(root=root, **parse_json(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:  # ValidationError is a ValueError
        raise ColocamError(f"{path} is damaged: delete it; corrections are in another file") from error


class Event(NamedTuple):
    """A stored correction.

    Attributes:
        version: of the video after this correction, from 1.
        client: name that the page gave it; a correction that is sent twice is stored once.
        made: time in UTC, ISO 8601.
        correction: what was done.
    """

    version: int
    client: str
    made: str
    correction: Correction


class EventStore:
    """The database of a server; its methods may be called from any thread.

    Raises:
        RefusalError: in any method: the disk is full, or the file is locked or damaged; nothing was stored.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        self._name = path.name
        self._unreadable: set[tuple[str, int]] = set()
        # What is known of a video, with the version that it is of; of a history also the number of actions.
        self._histories: OrderedDict[str, tuple[int, History, int]] = OrderedDict()
        self._classes: dict[str, tuple[int, str | None]] = {}
        try:
            self._database = sqlite3.connect(path, check_same_thread=False, isolation_level="IMMEDIATE")
            if self._tables() == _OLD_COLUMNS:
                self._database.executescript(f"BEGIN; {_RENAME} COMMIT;")
            if any(_COLUMNS.get(table) != columns for table, columns in self._tables().items()):
                self._database.close()
                raise ColocamError(f"{path} is a database of another program or version: move it away")
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=FULL")
            self._database.executescript(_SCHEMA)
        except sqlite3.DatabaseError as error:
            raise ColocamError(f"{path} is damaged ({error}): restore it from a copy, or move it away") from error

    def _tables(self) -> dict[str, str]:
        """Columns of each table."""
        query = (
            "SELECT m.name, group_concat(c.name) FROM sqlite_schema m, pragma_table_info(m.name) c "
            "WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' GROUP BY m.name"
        )
        return dict(self._database.execute(query).fetchall())

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock for one transaction; what SQLite refuses becomes one line with a remedy."""
        with self._lock:
            try:
                with self._database:
                    yield
            except sqlite3.Error as error:
                code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                raise RefusalError(507, f"{self._name}: {_REMEDIES.get(code, first_line(error))}") from error

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._database.close()

    def add_video(self, video: Video) -> None:
        """Add a video, or store its new path, name and tag."""
        row = (video.id, video.name, str(video.path), video.tag)
        with self._locked():
            self._database.execute("INSERT OR REPLACE INTO videos VALUES (?, ?, ?, ?)", row)

    def remove_video(self, video: str) -> None:
        """Remove a video from the library; its events are kept."""
        with self._locked():
            self._database.execute("DELETE FROM videos WHERE id = ?", (video,))

    def videos(self) -> list[Video]:
        """All videos, in the order in which they were added."""
        with self._locked():
            rows = self._database.execute("SELECT id, name, path, tag FROM videos ORDER BY rowid").fetchall()
        return [Video(key, name, Path(path), tag) for key, name, path, tag in rows]

    def events(self, video: str, after: int = 0) -> list[Event]:
        """The events of a video with versions above ``after``, in order."""
        query = "SELECT version, client, made, change FROM events WHERE video = ? AND version > ? ORDER BY version"
        with self._locked():
            return [self._event(video, row) for row in self._database.execute(query, (video, after)).fetchall()]

    def version(self, video: str) -> int:
        """The number of corrections of a video."""
        with self._locked():
            query = "SELECT COALESCE(MAX(version), 0) FROM events WHERE video = ?"
            (last,) = self._database.execute(query, (video,)).fetchone()
        return int(last)

    def history(self, video: str) -> tuple[int, History]:
        """The version of a video, and its corrections."""
        with self._locked():
            version = self.version(video)
            if self._histories.get(video, (None,))[0] != version:
                events = self.events(video)
                history = history_of(event.correction for event in events)
                self._histories[video] = version, history, sum(len(event.correction.actions) for event in events)
            self._histories.move_to_end(video)
            while len(self._histories) > 1 and sum(count for *_, count in self._histories.values()) > REMEMBERED:
                self._histories.popitem(last=False)
            return self._histories[video][:2]

    def class_of(self, video: str) -> str | None:
        """The class that people gave a whole video, "": the model finds it; None: nobody said anything about it."""
        with self._locked():
            version = self.version(video)
            if video not in self._classes or self._classes[video][0] != version:
                # Few videos have one, and a history takes long to read.
                query = 'SELECT 1 FROM events WHERE video = ? AND change LIKE \'%"kind":"video"%\' LIMIT 1'
                stated = self._database.execute(query, (video,)).fetchone() is not None
                self._classes[video] = version, self.history(video)[1].video_class if stated else None
            return self._classes[video][1]

    def append(self, video: str, client: str, version: int | None, correction: Correction) -> Event:
        """Store a correction, on the disk when this returns.

        Args:
            video: id.
            client: unique name of the correction; where it is stored already, the stored event is returned.
            version: of the video that the correction was made for; None: whichever it has.
            correction: what was done.

        Raises:
            RefusalError: with status 409 and ``conflict``, what was stored since then, where the video has a newer
                version; 404 where it has only older ones; 409 where there is none to undo or to redo.
        """
        with self._lock:
            before = self.version(video) if version is None else version
            with self._locked():
                event, new = self._append(video, client, before, correction)
            if new:  # it is on the disk
                self._note(video, event)
        return event

    def _note(self, video: str, event: Event) -> None:
        """Keep up what is known of a video."""
        version, correction = event.version, event.correction
        known = self._histories.get(video)
        if known is not None and known[0] == version - 1:
            self._histories[video] = version, known[1].after(correction), known[2] + len(correction.actions)
        stated = self._classes.get(video)
        about_frames = correction.kind == "edit" and all(action.kind != "video" for action in correction.actions)
        if stated is not None and stated[0] == version - 1 and about_frames:
            self._classes[video] = version, stated[1]

    def _append(self, video: str, client: str, version: int, correction: Correction) -> tuple[Event, bool]:
        """The event, and whether it was not stored before."""
        query = "SELECT version, client, made, change, video FROM events WHERE client = ?"
        row = self._database.execute(query, (client,)).fetchone()
        if row is not None:
            if row[4] != video:
                raise ColocamError(f"correction {client} is stored for another video: send it with a new name")
            return self._event(video, row[:4]), False
        last = self.version(video)
        if version > last:
            sentence = f"the correction is for version {version} of the video, which has {last}: reload the page"
            raise RefusalError(404, sentence)
        if last != version:
            since = [{"made": new.made, "change": new.correction.as_json()} for new in self.events(video, version)]
            raise RefusalError(409, "the video was changed in another window since this page loaded it", conflict=since)
        if correction.kind != "edit":
            _, history = self.history(video)
            if not (history.done if correction.kind == "undo" else history.undone):
                raise RefusalError(409, f"there is nothing to {correction.kind}")
        made = datetime.now(UTC).isoformat(timespec="milliseconds")
        text = correction.model_dump_json(exclude_none=True)
        self._database.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?)", (video, version + 1, client, made, text))
        return Event(version + 1, client, made, correction), True

    def _event(self, video: str, row: tuple[int, str, str, str]) -> Event:
        """An event; a correction that cannot be read says nothing, so that undo still counts right."""
        try:
            correction = Correction.model_validate_json(row[3])
        except ValidationError as error:
            if (video, row[0]) not in self._unreadable:
                self._unreadable.add((video, row[0]))
                problem = error.errors()[0]["msg"]
                where = f"{self._name}: correction {row[0]} of video {video}"
                say(f"warning: {where} cannot be read and is skipped: {problem}")
            correction = Correction.model_construct(kind="edit", actions=[])
        return Event(row[0], row[1], row[2], correction)
