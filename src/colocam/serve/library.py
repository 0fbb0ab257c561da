"""The videos of a server: which there are, how far each is prepared, and the threads that prepare them."""

import queue
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

from colocam.errors import ColocamError, InterruptedRunError
from colocam.inference.localizer import Localizer
from colocam.labels.table_files import file_name
from colocam.serve.guard import RefusalError, blame, named_paths
from colocam.serve.lessons import Lessons, ModelList, QuickLearning, ServedModel, titles
from colocam.serve.marks import MOST_FRAMES, Action, Correction, Marks, objects_of
from colocam.serve.stills import CamMaps, Stills
from colocam.serve.store import Event, EventStore, Settings, Wanted, Workspace, with_wanted
from colocam.serve.tally import Tallies
from colocam.serve.video_data import Video, VideoIndex, VideoResults, stored_index, stored_results, unused_name
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
    """A video that is being localized, with which model and settings, and what ends that."""

    video: Video
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
        load: opens a model; called in a thread. ``quick``: opens the quick lesson for a run folder.
        device: ``cpu`` or ``cuda``, for CAMs; None: the GPU, if there is one.
        segmenter: key of the segmenter that ``load`` gives to models; "": none. So ``prior``. ``looks``: see there.

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
        looks: int | None = None,
        prior: str = "",
    ) -> None:
        self.workspace, self.store, self.segmenter, self.looks, self.prior = workspace, store, segmenter, looks, prior
        self.stills = Stills()
        self._digests, self._digest_lock = FileDigests(workspace.root / MEMORY), threading.Lock()
        self.models = ModelList(load, workspace.root / MEMORY)
        self.first, *self.beside = (self.models.add(run, title) for run, title in zip(runs, titles(runs), strict=True))
        self.active = self.first
        self.problems: dict[str, str] = {}
        self.lessons = Lessons(self.first.path, workspace.root / "lessons", self._learned, quick)
        self.cams = CamMaps(device)
        self._tags: dict[str, list[str]] = {}
        self.adding, self.viewed = 0, ""
        self._lock = threading.RLock()
        self._videos = {video.id: video for video in store.videos()}
        self._to_read: queue.Queue[Video | None] = queue.Queue()
        self._to_localize: queue.PriorityQueue[tuple[int, int, Video | None, ServedModel]] = queue.PriorityQueue()
        self._order = count()
        self._stopping = threading.Event()
        self._ordered: set[tuple[str, str]] = set()
        self._running: Running | None = None
        self.tallies = Tallies(store)
        work = {"read videos": self._read_videos, "localize videos": self._localize_videos}
        self._threads = [threading.Thread(target=do, name=name, daemon=True) for name, do in work.items()]

    def start(self) -> None:
        """Begin to prepare all videos."""
        for path, title in self.lessons.earlier():
            self.models.add(path, title)
        with suppress(RefusalError):  # it is gone
            self.active = self.models.get(self.workspace.model)
        with self._lock:
            for video in self.videos():
                self._to_read.put(video)
            for thread in self._threads:
                thread.start()

    def stop(self) -> None:
        """End the threads, which wait for no pass of a network any more; close all readers."""
        self._stopping.set()
        self._to_read.put(None)
        self._to_localize.put((-1, next(self._order), None, self.active))
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

    def videos(self) -> list[Video]:
        """All videos, in the order in which they were added."""
        with self._lock:
            return list(self._videos.values())

    def video(self, video: str) -> Video:
        """The video of an id."""
        with self._lock:
            if video in self._videos:
                return self._videos[video]
        raise RefusalError(404, "there is no video with this id: open the library again")

    def without_paths(self, text: str) -> str:
        """A sentence with names of videos and models in place of paths of this machine."""
        models = {str(model.path): model.title for model in self.models.all()}
        return named_paths(text, {str(video.path): video.name for video in self.videos()} | models, self.workspace.root)

    def add(self, path: Path, name: str = "", tag: str = "") -> Video:
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
            old = self._videos.get(key)
            if old is not None and old.state != "failed" and old.path.exists():
                return old
            taken = {file_name(other.name).casefold() for other in self._videos.values() if other.id != key}
            stays = path.parent != self.workspace.uploads
            name = unused_name(path, name or VideoInput(str(path)).stem, taken, with_folders=stays)
            video = Video(key, name, path.absolute(), tag or (old.tag if old else ""), digest)
            self.store.add_video(video)
            self._videos[key] = video
            if self._threads[0].is_alive():
                self._to_read.put(video)
        return video

    def _digest(self, path: Path) -> str:
        """64 hexadecimal digits, of all bytes of a video, or of the names and contents of a folder of images."""
        with self._digest_lock:
            digest = self._digests.of_files(images_of(path)) if path.is_dir() else self._digests.of_file(path)
            self._digests.save()
        return digest

    def remove(self, video: Video) -> None:
        """Remove a video from the library; its file and its corrections are kept."""
        with self._lock:
            self.store.remove_video(video.id)
            self._videos.pop(video.id, None)

    def use(self, model: ServedModel) -> None:
        """Switch to another model; videos that it has not seen are localized, those on a page first."""
        with self._lock:
            self.active = model
            self.workspace.model = model.key
            self.workspace.save()
            self._show_results(self._videos.values())

    def correct(self, video: Video, client: str, version: int | None, correction: Correction) -> Event:
        """Store a correction, see :meth:`EventStore.append`; a video whose class it changes is localized again."""
        before = self.wanted(video)
        event = self.store.append(video.id, client, version, correction)
        if self.wanted(video) != before:
            self._show_results([video])
        return event

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Say which class videos show, by their ids; "": the classifier finds it. They are localized again.

        It is a correction of each video, which can be undone; what was said of the class of its frames counts no more.

        Raises:
            RefusalError: there is no such video, or the model in use does not know a class.
        """
        videos, known = [self.video(video) for video in tags], self.models.localizer(self.active).tags
        if unknown := set(tags.values()) - {"", *known}:
            sentence = f"the model in use does not know the class {min(unknown)}: choose one of {', '.join(known)}"
            raise RefusalError(422, sentence)
        for video in videos:
            said = any(action.kind == "class" for action in self.store.history(video.id)[1].actions)
            if said or (self.wanted(video).tag or "") != tags[video.id]:
                stated = Action(kind="video", start=0, stop=MOST_FRAMES, tag=tags[video.id] or None)
                self.correct(video, secrets.token_hex(16), None, Correction(kind="edit", actions=[stated]))

    def add_class(self, name: str) -> str:
        """Add a class; the name as it is kept, which may be that of one that is there already."""
        if not (name := plain(name)):
            raise RefusalError(422, "a class needs a name: give letters or digits")
        with self._lock:
            same = next((known for known in self.classes if known.casefold() == name.casefold()), None)
            if same is None:
                self.workspace.classes = [*self.workspace.classes, name]
                self.workspace.save()
        return same or name

    def set_options(self, settings: Settings) -> None:
        """Change the settings of all videos; they are localized again.

        Raises:
            RefusalError: the model in use cannot be used with them.
        """
        localizer = self.models.localizer(self.active)  # before the lock: it may have to be loaded
        if settings.presence is not None and localizer.card.presence is None:
            raise RefusalError(422, "this model cannot tell presence: leave presence empty, or train again")
        with self._lock:
            self.workspace.settings = settings
            self.workspace.save()
            self._show_results(self._videos.values())

    def _show_results(self, videos: Iterable[Video]) -> None:
        """Show what the model in use found with the settings in use; order what is not there yet."""
        with self._lock:
            if (running := self._running) and running.key != self.results_key(running.video, running.model):
                running.outdated.set()
            for video in videos:
                video.results = self.results_of(video, self.active)
                if video.index is None:
                    continue
                video.state, video.done = ("read", 0.0) if video.results is None else ("ready", 1.0)
                if video.results is None:
                    self._order_results(video, self.active)
                for model in self.beside:
                    self.look_at(video, model)

    def wanted(self, video: Video) -> Wanted:
        """The settings in use for a video."""
        with self._lock:
            if (tag := self.store.class_of(video.id)) is None:
                tag = self.workspace.tags.get(video.id, "")  # up to version 0.2.0 it was a setting
            return self.workspace.settings.of(tag, self.segmenter)._replace(looks=self.looks, prior=self.prior)

    def results_key(self, video: Video, model: ServedModel) -> str:
        """Stands for what a model finds in a video with the settings in use."""
        return self.wanted(video).key(model.key)

    def results_of(self, video: Video, model: ServedModel) -> VideoResults | None:
        """What a model found in a video with the settings in use; None: it is not done."""
        return video.results_by_key.get(self.results_key(video, model))

    def look(self, model: ServedModel) -> None:
        """Localize with a model that is not in use, after all that is; asked for once."""
        for video in self.videos():
            self.look_at(video, model)

    def look_at(self, video: Video, model: ServedModel) -> None:
        """Localize in one video with a model that is not in use; asked for once."""
        with self._lock:
            if video.index is not None and (video.id, self.results_key(video, model)) not in self._ordered:
                self._order_results(video, model)

    def _learned(self, path: Path, title: str) -> None:
        """A lesson has made a model: see what it finds."""
        self.look(self.models.add(path, title))

    def objects(self, video: Video, results: VideoResults) -> dict[int, Marks]:
        """What people said about the objects of a video, by their numbers, beside what a model found in it."""
        actions = self.store.history(video.id)[1].actions
        return objects_of(actions, results.index.frames, results.index.cuts, results.absent)

    def _order_results(self, video: Video, model: ServedModel) -> None:
        with self._lock:
            self._ordered.add((video.id, self.results_key(video, model)))
            rank = 2 if model != self.active else int(video.id != self.viewed)
            self._to_localize.put((rank, next(self._order), video, model))

    def _try(self, video: Video, work: Callable[[], None], other: ServedModel | None = None) -> None:
        """Do some work; a failure is that of the video, or of another model than the one in use."""
        with self._lock:
            if self._videos.get(video.id) is not video:  # it was removed, or added again
                return
        try:
            work()
        except InterruptedRunError:  # the server ends, or other settings were chosen and ordered
            return
        except Exception as error:  # noqa: BLE001 - one video must not end the preparation of the others
            problem, fault = blame(error, video.name)
        else:
            return
        say(f"warning: {video.name}: {problem}")
        problem = self.without_paths(problem)
        with self._lock:
            if other is not None:
                self.problems[other.key] = problem
            else:
                video.problem, video.fault, video.state = problem, fault, "failed"

    def retry(self, video: Video) -> None:
        """Prepare a video again that failed."""
        with self._lock:
            if video.state == "failed":
                video.state, video.problem, video.fault = "waiting", "", ""
                self._to_read.put(video)

    def _read_videos(self) -> None:
        while (video := self._to_read.get()) is not None:
            self._try(video, partial(self._read, video))

    def _read(self, video: Video) -> None:
        video.state, video.done = "reading", 0.0
        if not video.path.exists():
            raise ColocamError(f"{video.path} was moved or deleted: {AGAIN}")
        video.digest = video.digest or self._digest(video.path)
        if video.digest[:ID_DIGITS] != video.id:
            raise ColocamError(f"{video.path} is now a different video: {AGAIN}")
        endings = ("csv", "npz", "mp4", "jpg")
        described, stored, proxy, thumbnail = (self.workspace.video(video.id, ending) for ending in endings)
        index = stored_index(video.path, described, stored, proxy, thumbnail, partial(setattr, video, "done"))
        with self._lock:  # a model that is chosen now sees the video either as read, or orders nothing for it
            video.index, video.state, video.done = index, "read", 0.0
            for model in (self.active, *self.beside):
                self._order_results(video, model)

    def _localize_videos(self) -> None:
        while True:
            _, _, video, model = self._to_localize.get()
            if video is None:
                return
            self._try(video, partial(self._localize, video, model), None if model == self.active else model)

    def _localize(self, video: Video, model: ServedModel) -> None:
        """Localize with the settings in use now, whichever were in use when this was ordered."""
        assert video.index is not None
        with self._lock:
            wanted = self.wanted(video)
            key = wanted.key(model.key)
            self._running = running = Running(video, model, key, threading.Event())
        try:
            results = video.results_by_key.get(key) or self._results(video.index, wanted, running)
        finally:
            with self._lock:
                self._running = None
                if running.outdated.is_set():
                    self._ordered.discard((video.id, key))
        old = self.workspace.forget(video.id, model.key, {key, self.results_key(video, model)})
        with self._lock:
            kept = {name: value for name, value in video.results_by_key.items() if name not in old}
            video.results_by_key = {**kept, key: results}  # a new one: others may be going through the old one
            self._ordered -= {(video.id, name) for name in old}
            if self._in_use(running):
                video.results, video.state, video.done = results, "ready", 1.0
        self.tallies.of(video)  # the library need not wait for it

    def _in_use(self, running: Running) -> bool:
        return running.model == self.active and running.key == self.results_key(running.video, running.model)

    def _results(self, index: VideoIndex, wanted: Wanted, running: Running) -> VideoResults:
        video, model, key, outdated = running
        localizer = self.models.localizer(model)
        with self._lock:
            self._tags[model.key] = list(localizer.tags)
        table = self.workspace.video(video.id, f"{key}.csv")
        made = f"{RESULTS_VERSION} {key} {video.digest}"

        def passed(frames: int) -> None:
            with self._lock:
                if self._in_use(running):
                    video.state, video.done = "localizing", min(1.0, video.done + frames / len(index.frames))

        tuned = partial(with_wanted, localizer, wanted)
        return stored_results(tuned, video.path, index, table, made, passed, (self._stopping, outdated))
