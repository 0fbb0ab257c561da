"""The films of a server: which there are, how far each is prepared, and the threads that prepare them."""

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from colocam.errors import ColocamError
from colocam.inference.jobs import fingerprint
from colocam.inference.localizer import Localizer
from colocam.serve.event_store import EventStore, FilmRow
from colocam.serve.film_id import film_id
from colocam.serve.film_index import FilmIndex, index_film, load_index, save_index
from colocam.serve.film_results import FilmResults, load_results, localize_film
from colocam.serve.lessons import Lessons
from colocam.serve.stills import Stills
from colocam.serve.workspace import Workspace
from colocam.utils.files import plain
from colocam.utils.progress import say
from colocam.video.description import read_made, read_source, write_source
from colocam.video.input import VideoInput

STATES = ("waiting", "reading", "read", "localising", "ready", "failed")
"""``read``: the frames are known, and the film waits for the model."""


class UnknownFilmError(ColocamError):
    """There is no film of this id."""


@dataclass
class Film:
    """A film of the library.

    Attributes:
        id: digest of its content.
        name: as the page shows it.
        path: on this machine; the page never sees it.
        tag: class that the video carries, "" where it is unknown.
        state: one of :data:`STATES`.
        done: share of the present state that is done, 0–1.
        problem: why it failed, in one sentence.
        index: its frames, once they are read.
        results: what the model found, once it is done.
    """

    id: str
    name: str
    path: Path
    tag: str = ""
    state: str = "waiting"
    done: float = 0.0
    problem: str = ""
    index: FilmIndex | None = field(default=None, repr=False)
    results: FilmResults | None = field(default=None, repr=False)


class Library:
    """All films of a server.

    Args:
        workspace: the open folder.
        store: its events.
        run: run folder or ONNX file of the model.
        load: opens the model; called once, in a thread.
    """

    def __init__(self, workspace: Workspace, store: EventStore, run: Path, load: Callable[[], Localizer]) -> None:
        self.workspace = workspace
        self.store = store
        self.stills = Stills()
        self.lessons = Lessons(run, workspace.root / "lessons")
        self.tags: list[str] = []
        self._run = run
        self._load = load
        self._films: dict[str, Film] = {}
        self._to_read: queue.Queue[Film | None] = queue.Queue()
        self._to_localise: queue.Queue[Film | None] = queue.Queue()
        self._threads = [
            threading.Thread(target=self._work, args=(self._to_read, self._read), name="read films", daemon=True),
            threading.Thread(target=self._localise_films, name="localise films", daemon=True),
        ]

    def start(self) -> None:
        """Take the films of the last start and begin to prepare all."""
        for row in self.store.films():
            self._films.setdefault(row.id, Film(row.id, row.name, Path(row.path), row.tag))
        for film in self._films.values():
            self._to_read.put(film)
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the threads after their present film; close all readers."""
        self._to_read.put(None)
        self._to_localise.put(None)
        self.stills.close()
        self.lessons.stop()

    def films(self) -> list[Film]:
        """All films, in the order in which they were added."""
        return list(self._films.values())

    def film(self, film: str) -> Film:
        """The film of an id."""
        if film not in self._films:
            raise UnknownFilmError("there is no film of this id: open the library again")
        return self._films[film]

    def add(self, path: Path, name: str = "", tag: str = "") -> Film:
        """Add a film; one of the same content is there already and keeps its corrections."""
        try:
            key = film_id(path)
        except OSError as error:
            raise ColocamError(f"cannot read {path}: {error.strerror}") from error
        old = self._films.get(key)
        if old is not None and old.state != "failed":
            return old
        film = Film(key, plain(name or path.name) or "film", path.absolute(), tag or (old.tag if old else ""))
        self.store.add_film(FilmRow(film.id, film.name, str(film.path), film.tag))
        self._films[key] = film
        if self._threads[0].is_alive():
            self._to_read.put(film)
        return film

    def remove(self, film: Film) -> None:
        """Remove a film from the library; its file and its corrections are kept."""
        self.store.remove_film(film.id)
        self._films.pop(film.id, None)

    def table(self, film: Film) -> Path:
        """Path of the localisation table of a film."""
        return self.workspace.film(film.id, "csv")

    def _work(self, films: "queue.Queue[Film | None]", work: Callable[[Film], None]) -> None:
        while (film := films.get()) is not None:
            if film.id not in self._films:
                continue
            try:
                work(film)
            except (ColocamError, OSError) as error:
                self._fail(film, str(error))
            except Exception as error:  # noqa: BLE001 - one film must not end the preparation of the others
                self._fail(film, f"cannot read {film.name}: {type(error).__name__}: {error}")

    def _fail(self, film: Film, problem: str) -> None:
        say(f"warning: {film.name}: {problem}")
        # The page shows names, never paths of this machine.
        film.problem, film.state = problem.replace(str(film.path), film.name), "failed"

    def _read(self, film: Film) -> None:
        film.state, film.done = "reading", 0.0
        stored = self.workspace.film(film.id, "npz")
        table, proxy = self.table(film), self.workspace.film(film.id, "mp4")
        film.index = self._stored_index(film)
        if film.index is None or (len(film.index.proxy) and not proxy.is_file()):
            thumbnail = self.workspace.film(film.id, "jpg")

            def report(done: float) -> None:
                film.done = done

            film.index = index_film(film.path, proxy, thumbnail, report)
            write_source(table, film.index.source)
            save_index(stored, film.index)
        film.state, film.done = "read", 0.0
        self._to_localise.put(film)

    def _stored_index(self, film: Film) -> FilmIndex | None:
        if not film.path.exists():
            raise ColocamError(
                f"{film.path} was moved or deleted: name it again in the command, or drop it on the page"
            )
        try:
            source = read_source(self.table(film))
        except ColocamError:
            return None
        return load_index(self.workspace.film(film.id, "npz"), source)

    def _localise_films(self) -> None:
        try:
            localizer = self._load()
        except (ColocamError, OSError) as error:
            say(f"error: {error}")
            problem = str(error)

            def refuse(_film: Film) -> None:
                raise ColocamError(problem)

            self._work(self._to_localise, refuse)
            return
        self.tags = list(localizer.tags)
        self._work(self._to_localise, lambda film: self._localise(film, localizer))

    def _localise(self, film: Film, localizer: Localizer) -> None:
        assert film.index is not None
        table, maps = self.table(film), self.workspace.film(film.id, "maps")
        made = fingerprint(self._run, VideoInput(str(film.path)), {"page": 1})
        if not (table.is_file() and maps.is_file() and read_made(table) == made):
            film.state = "localising"
            count = len(film.index.frames)

            def report(done: int) -> None:
                film.done = min(1.0, done / count)

            localize_film(localizer, film.path, table, maps, report)
            write_source(table, film.index.source, made)
        film.results = load_results(table, maps, film.index.source)
        if film.results.rows.frame.tolist() != film.index.frames.tolist():
            raise ColocamError(f"{film.name} changed while it was read: restart the server")
        film.state, film.done = "ready", 1.0
