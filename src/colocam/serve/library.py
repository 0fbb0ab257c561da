"""The videos of a server: which there are, how far each is prepared, and the threads that prepare them."""

import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate, count
from pathlib import Path
from typing import NamedTuple

from colocam.errors import ColocamError, InterruptedRunError
from colocam.inference.localizer import Localizer
from colocam.labels.table_files import file_name, unused
from colocam.serve.film_data import Film, FilmIndex, FilmResults, stored_index, stored_results
from colocam.serve.guard import RefusalError, named_paths
from colocam.serve.lessons import Lessons, ModelList, QuickLearning, ServedModel, titles
from colocam.serve.marks import Marks, objects_of
from colocam.serve.stills import CamMaps, Stills
from colocam.serve.store import EventStore, Settings, Wanted, Workspace, with_wanted
from colocam.utils.digests import MEMORY, FileDigests
from colocam.utils.files import plain
from colocam.utils.progress import say
from colocam.video.images import images_of
from colocam.video.input import VideoInput

ID_DIGITS = 24
"""Hexadecimal digits of a video's digest that are its id."""
SECONDS_TO_END = 2.0
"""For the thread that waits for a pass to notice that nobody does."""
AGAIN = "name it again in the command, or drop it on the page"
RESULTS_VERSION = 3
"""Results of another version are computed again."""


class Running(NamedTuple):
    """A video that is being localised, with which model and settings, and what ends that."""

    film: Film
    model: ServedModel
    key: str
    outdated: threading.Event


class Library:
    """All videos of a server; may be called from any thread.

    All that changes does so under one lock. Nothing is read, computed or decoded while it is held.

    Args:
        workspace: the open folder.
        store: its events.
        runs: run folders or ONNX files: the model of the command, and those to show beside it.
        load: opens a model; called in a thread.
        quick: opens the quick lesson for a run folder.
        device: ``cpu`` or ``cuda``, for CAMs; None: the GPU, if there is one.
        segmenter: key of the segmenter that ``load`` gives to models; "": none.

    Attributes:
        active: the model in use: its boxes are shown, corrected and exported.
        problems: why a model that is not in use cannot be shown, by its key.
        adding: videos of the command that are not added yet.
        viewed: id of the video that a page shows: its results are wanted first.
    """

    def __init__(
        self,
        workspace: Workspace,
        store: EventStore,
        runs: Sequence[Path],
        load: Callable[[Path], Localizer],
        *,
        quick: Callable[[Path], QuickLearning],
        device: str | None = None,
        segmenter: str = "",
    ) -> None:
        self.workspace, self.store, self.segmenter = workspace, store, segmenter
        self.stills = Stills()
        self._digests, self._digest_lock = FileDigests(workspace.root / MEMORY), threading.Lock()
        self.models = ModelList(load, workspace.root / MEMORY)
        self.first, *self.beside = (self.models.add(run, title) for run, title in zip(runs, titles(runs), strict=True))
        self.active = self.first
        self.problems: dict[str, str] = {}
        self.lessons = Lessons(self.first.path, workspace.root / "lessons", self._learnt, quick)
        self.cams = CamMaps(device)
        self.adding = 0
        self._tags: dict[str, list[str]] = {}
        self.viewed = ""
        self._lock = threading.RLock()
        self._films = {film.id: film for film in store.films()}
        self._to_read: queue.Queue[Film | None] = queue.Queue()
        self._to_localise: queue.PriorityQueue[tuple[int, int, Film | None, ServedModel]] = queue.PriorityQueue()
        self._order = count()
        self._stopping = threading.Event()
        self._ordered: set[tuple[str, str]] = set()
        self._running: Running | None = None
        work = {"read films": self._read_films, "localise films": self._localise_films}
        self._threads = [threading.Thread(target=do, name=name, daemon=True) for name, do in work.items()]

    def start(self) -> None:
        """Begin to prepare all videos."""
        for path, title in self.lessons.earlier():
            self.models.add(path, title)
        with suppress(RefusalError):  # it is gone
            self.active = self.models.get(self.workspace.model)
        with self._lock:
            for film in self.films():
                self._to_read.put(film)
            for thread in self._threads:
                thread.start()

    def stop(self) -> None:
        """End the threads, which wait for no pass of a network any more; close all readers."""
        self._stopping.set()
        self._to_read.put(None)
        self._to_localise.put((-1, next(self._order), None, self.active))
        self.stills.close()
        self.lessons.stop()
        if self._threads[1].is_alive():
            self._threads[1].join(SECONDS_TO_END)

    @property
    def tags(self) -> list[str]:
        """Classes that the model in use knows; none before it is loaded."""
        return self._tags.get(self.active.key, [])

    @property
    def classes(self) -> list[str]:
        """Classes that objects can have: those of the model in use, and those that people added."""
        return list(dict.fromkeys([*self.tags, *self.workspace.classes]))

    def films(self) -> list[Film]:
        """All videos, in the order in which they were added."""
        with self._lock:
            return list(self._films.values())

    def film(self, film: str) -> Film:
        """The video of an id."""
        with self._lock:
            if (found := self._films.get(film)) is None:
                raise RefusalError(404, "there is no video of this id: open the library again")
            return found

    def without_paths(self, text: str) -> str:
        """A sentence with names of videos and models in place of paths of this machine."""
        models = {str(one.path): one.title for one in self.models.all()}
        return named_paths(text, {str(one.path): one.name for one in self.films()} | models, self.workspace.root)

    def add(self, path: Path, name: str = "", tag: str = "") -> Film:
        """Add a video; one of the same content is there already and keeps its name and its corrections.

        Args:
            path: a video file or a folder of images.
            name: as ``colocam localize`` names its results; by default that of the file, without its ending.
            tag: class that the video carries, "" where it is unknown.
        """
        try:
            key = (digest := self._digest(path))[:ID_DIGITS]
        except OSError as error:
            raise ColocamError(f"cannot read {name or path}: {error.strerror}") from error
        with self._lock:
            old = self._films.get(key)
            if old is not None and old.state != "failed" and old.path.exists():
                return old
            name = self._own_name(path, name or VideoInput(str(path)).stem, key)
            film = Film(key, name, path.absolute(), tag or (old.tag if old else ""), digest)
            self.store.add_film(film)
            self._films[key] = film
            if self._threads[0].is_alive():
                self._to_read.put(film)
        return film

    def _digest(self, path: Path) -> str:
        """64 hexadecimal digits, of all bytes of a video, or of the names and contents of a folder of images."""
        with self._digest_lock:
            found = self._digests.of_files(images_of(path)) if path.is_dir() else self._digests.of_file(path)
            self._digests.save()
        return found

    def _own_name(self, path: Path, name: str, film: str) -> str:
        """The name for a video that no other has, also as a part of file names: with folders before it, or a number."""
        taken = {file_name(other.name).casefold() for other in self._films.values() if other.id != film}
        name = "/".join(plain(part) for part in name.split("/")) or "video"
        folders = path.absolute().parent.parts[1:][::-1] if path.parent != self.workspace.uploads else ()
        above = accumulate(folders[name.count("/") :], lambda under, one: f"{plain(one)}/{under}", initial=name)
        return unused(list(above), taken)

    def remove(self, film: Film) -> None:
        """Remove a video from the library; its file and its corrections are kept."""
        with self._lock:
            self.store.remove_film(film.id)
            self._films.pop(film.id, None)

    def use(self, model: ServedModel) -> None:
        """Switch to another model; videos that it has not seen are localised, those on a page first."""
        with self._lock:
            self.active = model
            self.workspace.model = model.key
            self.workspace.save()
            self._show_results(self._films.values())

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Say which class videos show, by their ids; "": the classifier finds it. They are localised again.

        Raises:
            RefusalError: there is no such video, or the model in use does not know a class.
        """
        films = [self.film(film) for film in tags]
        localizer = self.models.localizer(self.active)  # before the lock: it may have to be loaded
        if unknown := {tag for tag in tags.values() if tag} - set(localizer.tags):
            known = ", ".join(localizer.tags)
            raise RefusalError(422, f"the model in use does not know the class {min(unknown)}: choose one of {known}")
        with self._lock:
            now = {**self.workspace.tags, **tags}
            self.workspace.tags = {film: tag for film, tag in now.items() if tag}
            self.workspace.save()
            self._show_results(films)

    def add_class(self, name: str) -> str:
        """Add a class; the name as it is kept, which may be that of one that is there already."""
        if not (name := plain(name)):
            raise RefusalError(422, "a class needs a name: give letters or digits")
        with self._lock:
            same = next((one for one in self.classes if one.casefold() == name.casefold()), None)
            if same is None:
                self.workspace.classes = [*self.workspace.classes, name]
                self.workspace.save()
        return same or name

    def set_options(self, settings: Settings) -> None:
        """Change the settings of all videos; they are localised again.

        Raises:
            RefusalError: the model in use cannot be used with them.
        """
        localizer = self.models.localizer(self.active)  # before the lock: it may have to be loaded
        if settings.presence is not None and localizer.card.presence is None:
            raise RefusalError(422, "the model in use does not know presence: leave presence empty, or train again")
        with self._lock:
            self.workspace.settings = settings
            self.workspace.save()
            self._show_results(self._films.values())

    def _show_results(self, films: Iterable[Film]) -> None:
        """Show what the model in use found with the settings in use; order what is not there yet."""
        with self._lock:
            if (running := self._running) and running.key != self.results_key(running.film, running.model):
                running.outdated.set()
            for film in films:
                film.results = self.found(film, self.active)
                if film.index is None:
                    continue
                film.state, film.done = ("read", 0.0) if film.results is None else ("ready", 1.0)
                if film.results is None:
                    self._order_results(film, self.active)
                for model in self.beside:
                    self.look_at(film, model)

    def wanted(self, film: Film) -> Wanted:
        """The settings in use for a video."""
        with self._lock:
            return self.workspace.settings.of(self.workspace.tags.get(film.id, ""), self.segmenter)

    def results_key(self, film: Film, model: ServedModel) -> str:
        """Stands for what a model finds in a video with the settings in use."""
        return self.wanted(film).key(model.key)

    def found(self, film: Film, model: ServedModel) -> FilmResults | None:
        """What a model found in a video with the settings in use; None: it is not done."""
        return film.found.get(self.results_key(film, model))

    def look(self, model: ServedModel) -> None:
        """Localise with a model that is not in use, after all that is; asked for once."""
        for film in self.films():
            self.look_at(film, model)

    def look_at(self, film: Film, model: ServedModel) -> None:
        """Localise in one video with a model that is not in use; asked for once."""
        with self._lock:
            if film.index is not None and (film.id, self.results_key(film, model)) not in self._ordered:
                self._order_results(film, model)

    def _learnt(self, path: Path, title: str) -> None:
        """A lesson has made a model: see what it finds."""
        self.look(self.models.add(path, title))

    def objects(self, film: Film, results: FilmResults) -> dict[int, Marks]:
        """What people said about the objects of a video, by their numbers, beside what a model found in it."""
        actions = self.store.history(film.id)[1].actions
        return objects_of(actions, results.index.frames, results.index.cuts, results.absent)

    def _order_results(self, film: Film, model: ServedModel) -> None:
        with self._lock:
            self._ordered.add((film.id, self.results_key(film, model)))
            rank = 2 if model != self.active else 0 if film.id == self.viewed else 1
            self._to_localise.put((rank, next(self._order), film, model))

    def _try(self, film: Film, work: Callable[[], None], other: ServedModel | None = None) -> None:
        """Do some work; a failure is that of the video, or of another model than the one in use."""
        with self._lock:
            if self._films.get(film.id) is not film:  # it was removed, or added again
                return
        try:
            work()
        except InterruptedRunError:  # the server ends, or other settings were chosen and ordered
            return
        except (ColocamError, OSError) as error:
            problem = str(error)
        except Exception as error:  # noqa: BLE001 - one video must not end the preparation of the others
            problem = f"cannot read {film.name}: {type(error).__name__}: {error}"
        else:
            return
        say(f"warning: {film.name}: {problem}")
        problem = self.without_paths(problem)
        with self._lock:
            if other is not None:
                self.problems[other.key] = problem
            else:
                film.problem, film.state = problem, "failed"

    def _read_films(self) -> None:
        while (film := self._to_read.get()) is not None:
            self._try(film, partial(self._read, film))

    def _read(self, film: Film) -> None:
        film.state, film.done = "reading", 0.0
        if not film.path.exists():
            raise ColocamError(f"{film.path} was moved or deleted: {AGAIN}")
        film.digest = film.digest or self._digest(film.path)
        if film.digest[:ID_DIGITS] != film.id:
            raise ColocamError(f"{film.path} is another video now: {AGAIN}")
        endings = ("csv", "npz", "mp4", "jpg")
        described, stored, proxy, thumbnail = (self.workspace.film(film.id, ending) for ending in endings)
        index = stored_index(film.path, described, stored, proxy, thumbnail, partial(setattr, film, "done"))
        with self._lock:  # a model that is chosen now sees the video either as read, or orders nothing for it
            film.index, film.state, film.done = index, "read", 0.0
            for model in (self.active, *self.beside):
                self._order_results(film, model)

    def _localise_films(self) -> None:
        while True:
            _, _, film, model = self._to_localise.get()
            if film is None:
                return
            self._try(film, partial(self._localise, film, model), None if model == self.active else model)

    def _localise(self, film: Film, model: ServedModel) -> None:
        """Localise with the settings in use now, whichever were in use when this was ordered."""
        assert film.index is not None
        with self._lock:
            wanted = self.wanted(film)
            key = wanted.key(model.key)
            self._running = running = Running(film, model, key, threading.Event())
        try:
            results = film.found.get(key) or self._results(film.index, wanted, running)
        finally:
            with self._lock:
                self._running = None
                if running.outdated.is_set():
                    self._ordered.discard((film.id, key))
        old = self.workspace.forget(film.id, model.key, {key, self.results_key(film, model)})
        with self._lock:
            kept = {one: found for one, found in film.found.items() if one not in old}
            film.found = {**kept, key: results}  # a new one: others may be going through the old one
            self._ordered -= {(film.id, one) for one in old}
            if self._in_use(running):
                film.results, film.state, film.done = results, "ready", 1.0

    def _in_use(self, running: Running) -> bool:
        return running.model == self.active and running.key == self.results_key(running.film, running.model)

    def _results(self, index: FilmIndex, wanted: Wanted, running: Running) -> FilmResults:
        film, model, key, outdated = running
        localizer = self.models.localizer(model)
        with self._lock:
            self._tags[model.key] = list(localizer.tags)
        table = self.workspace.film(film.id, f"{key}.csv")
        made = f"{RESULTS_VERSION} {key} {film.digest}"

        def passed(frames: int) -> None:
            with self._lock:
                if self._in_use(running):
                    film.state, film.done = "localising", min(1.0, film.done + frames / len(index.frames))

        tuned = partial(with_wanted, localizer, wanted)
        return stored_results(tuned, film.path, index, table, made, passed, (self._stopping, outdated))
