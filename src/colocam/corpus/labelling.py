"""Label one film after the other with one model, in one process."""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from colocam.corpus.film_keys import film_digest, film_key, model_key
from colocam.corpus.films import Film
from colocam.corpus.items import Done, FrameRange, Item, Known, Progress, Report, Result, Split
from colocam.corpus.long_films import LONG, Ranges, find_ranges, is_divisible
from colocam.corpus.part_files import count_part, durable, film_metadata, is_whole, part_path
from colocam.errors import ColocamError
from colocam.inference.localizer import Localizer
from colocam.inference.options import make_options
from colocam.inference.runtimes import open_network
from colocam.labels.table import LocalizationTable
from colocam.segment import load_segmenter, segmenter_files
from colocam.temporal.smoothing import Shots
from colocam.utils.digests import FileDigests
from colocam.video.description import describe, picture_names
from colocam.video.fence import FencedReader
from colocam.video.frame_choice import ALL, FrameChoice
from colocam.video.frame_ring import FrameLayout
from colocam.video.input import UnreadableError, VideoInput

BETWEEN_REPORTS = 0.2
"""Seconds between two reports of progress at least."""


@dataclass(frozen=True, slots=True)
class LabelSettings:
    """All that a worker needs to know; called with the index of a worker, it loads the model.

    Attributes:
        run: run folder of a trained model, or an ONNX file made from it.
        labels: folder of the labels.
        memory: file of remembered digests.
        device: ``cpu`` or ``cuda``; None: the GPU, if there is one.
        refine: a promptable segmenter.
        choice: which frames.
        options: fields of :class:`colocam.inference.options.Options`, without the tag.
        prepare: called first in each worker, e.g. to load extensions.
        long: frames of a film that is divided into ranges.
    """

    run: Path
    labels: Path
    memory: Path
    device: str | None = None
    refine: str | None = None
    choice: FrameChoice = ALL
    options: dict[str, Any] = field(default_factory=dict)
    prepare: Callable[[], None] | None = None
    long: int = LONG

    def key(self) -> str:
        """Digest of the content of the model and of what else changes results."""
        options = {**asdict(make_options(**self.options)), "batch": None}
        settings = {**options, "choice": asdict(self.choice), "device": self.device}
        return model_key(self.run, settings, () if self.refine is None else segmenter_files(self.refine))

    def __call__(self, index: int) -> "FilmLabeller":
        """Load the model for the worker with this index."""
        if self.prepare is not None:
            self.prepare()
        return FilmLabeller(self, index)


class FilmLabeller:
    """Writes the parts of films; see :data:`colocam.corpus.items.Labeller`."""

    def __init__(self, settings: LabelSettings, index: int) -> None:
        self._settings = settings
        self._model = settings.key()
        device = _own_device(settings, index)
        self._network, self._card = open_network(settings.run, device)
        self._segmenter = None if settings.refine is None else load_segmenter(settings.refine, device)
        if settings.key() != self._model:
            raise ColocamError(f"{settings.run} was changed while it was loaded: run the same command again")
        self._digests = FileDigests(settings.memory)
        self._localizers: dict[str | None, Localizer] = {}

    def __call__(self, item: Item, report: Report) -> Result:
        """Label a film or a range of it, unless that is done already.

        Raises:
            VideoError: the film cannot be read.
            ColocamError: no film can be labelled.
        """
        digest = self._digest(item.film)
        key = film_key(self._model, item.film, digest)
        report(Known(key))
        part = part_path(self._settings.labels, key)
        if is_whole(part):
            return Done(key, *count_part(part), digest)
        ranges = Ranges(self._settings.labels, key)
        if item.range is not None:
            ranges.finish(item.range, self._write(item.film, ranges.table(item.range), report, item.range))
            return Done(key)
        plan = ranges.read() or self._plan(item.film, ranges, report)
        if missing := ranges.missing(plan):
            return Split(tuple(missing))
        if plan:
            ranges.join(plan, part)
        else:
            with durable(part):
                self._write(item.film, part, report)
        return Done(key, *count_part(part), digest)

    def _digest(self, film: Film) -> str:
        try:
            digest = film_digest(film, self._digests)
        except OSError as error:
            raise UnreadableError(f"cannot read {film.path}: {error.strerror}") from error
        self._digests.save()
        return digest

    def _plan(self, film: Film, ranges: Ranges, report: Report) -> list[FrameRange]:
        """Divide a long film; an empty plan for one that is labelled as a whole."""
        choice, longest = self._settings.choice, self._settings.long
        if not is_divisible(choice):
            return []
        with self._open(film) as reader:
            if reader.estimate(choice) <= longest:
                return []
            beat = _Beat(report)
            frames = (frame for frame in reader.frames(choice) if beat(0))
            plan = find_ranges(self._localizer(film.tag), frames, longest)
            metadata = _metadata(film, reader)
        if len(plan) < 2:
            return []
        ranges.write(plan, metadata)
        return plan

    def _write(self, film: Film, target: Path, report: Report, one: FrameRange | None = None) -> int:
        """Write the rows of a film, or of a range of it with tracks from 0; returns the number of these tracks."""
        localizer, choice, beat = self._localizer(film.tag), self._settings.choice, _Beat(report)
        shots: Shots = {}
        if one is not None:
            choice = replace(choice, frames=(one.first, one.stop))
        with (
            self._open(film) as reader,
            LocalizationTable(target, localizer.columns, picture_names(reader.pictures)) as table,
            closing(localizer.stream(reader.frames(choice), images=False, shots=shots)) as stream,
        ):
            last = -1
            for _, found in stream:
                beat(int(found.frame != last))
                last = found.frame
                if one is None:
                    table.write(found)
                elif one.begin <= found.frame and (one.end is None or found.frame < one.end):
                    before = shots.get(one.begin, 0)
                    table.write(found if found.track is None else replace(found, track=found.track - before))
            if last < 0:
                raise UnreadableError(f"{film.path} has no frame {choice}")
            if one is None:
                table.add_metadata(_metadata(film, reader))
        beat.flush()
        if one is None or one.end is None or localizer.options.smooth == "none":
            return 0
        if not shots.keys() >= {one.begin, one.end} - {one.first}:
            raise RuntimeError("its cuts differ from those that an earlier attempt found")
        return shots[one.end] - shots.get(one.begin, 0)

    def _open(self, film: Film) -> FencedReader:
        """A film in a decoder process, which also resizes its frames."""
        layout = FrameLayout(self._card.size, images=self._segmenter is not None)
        # One thread: what FFmpeg makes of a damaged film may depend on their number, and there are workers for all
        # cores.
        return FencedReader(VideoInput(str(film.path), must_be_stored=True), threads=1, layout=layout)

    def _localizer(self, tag: str | None) -> Localizer:
        if tag not in self._localizers:
            self._localizers[tag] = Localizer(
                self._network, self._card, segmenter=self._segmenter, tag=tag, **self._settings.options
            )
        return self._localizers[tag]


class _Beat:
    """Reports frames, and that the worker is alive; not too often."""

    def __init__(self, report: Report) -> None:
        self._report, self._frames, self._last = report, 0, time.monotonic()

    def __call__(self, frames: int) -> bool:
        self._frames += frames
        if time.monotonic() - self._last > BETWEEN_REPORTS:
            self.flush()
        return True

    def flush(self) -> None:
        self._report(Progress(self._frames))
        self._frames, self._last = 0, time.monotonic()


def _metadata(film: Film, reader: FencedReader) -> dict[str, str]:
    count = reader.count if reader.ended else max(reader.count, reader.total)
    return film_metadata(describe(film.path, reader.info, count, reader.pictures))


def _own_device(settings: LabelSettings, index: int) -> str | None:
    """Workers take the GPUs in turn."""
    if settings.run.suffix.lower() == ".onnx" or settings.device not in {None, "cuda"}:
        return settings.device
    import torch  # noqa: PLC0415 - an ONNX file needs no torch

    count = torch.cuda.device_count()
    return f"cuda:{index % count}" if count else settings.device
