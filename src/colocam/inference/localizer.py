"""Localizer: open a trained model, put in a video, get a :class:`Localization` per frame."""

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Unpack

import cv2
import numpy as np

from colocam.boxes.candidates import candidate_boxes
from colocam.boxes.extract import mask_of_box
from colocam.boxes.instance_boxes import instance_boxes
from colocam.boxes.quantize import to_8bit
from colocam.boxes.scale import scale_boxes
from colocam.config import COLOR_MEANS
from colocam.config.card import Card
from colocam.errors import ColocamError, suggest
from colocam.inference.network import Answers, Finish, Network, begin
from colocam.inference.options import SMOOTH, Options
from colocam.inference.pipeline import in_parts
from colocam.inference.runtimes import open_network
from colocam.inference.stages import Maps, Pictures, heat_of, resize, softmax
from colocam.temporal.cuts import colour_histograms, find_cuts
from colocam.temporal.path import NONE, margin
from colocam.temporal.presence import SHARE, Calibration, Presence
from colocam.temporal.smoothing import FrameObservation, single, steady
from colocam.temporal.tracks import each, steady_instances
from colocam.types import Box, Localization, VideoFrame
from colocam.utils.prefetch import ahead
from colocam.video.frame_choice import Chosen, FrameChoice

WORKERS = min(16, os.cpu_count() or 1)
"""Threads that resize the frames of a batch."""
LOOKERS = min(8, os.cpu_count() or 1)
"""Threads that look for boxes in its maps: compiled code needs no more of them, and they leave others room."""
BATCH = 16
"""Frames at once for a network that does not say what suits it."""
BATCH_ONLINE = 8
"""At the most, unless told otherwise, where answers are wanted as frames arrive."""
BATCH_BYTES = 2**27
"""Decoded frames that a batch may hold: large ones come in smaller batches."""


class Localizer:
    """Says what is in each frame of a video and where.

    Example:
        >>> localizer = Localizer.load("runs/pets")          # doctest: +SKIP
        >>> for found in localizer("holiday.mp4"):           # doctest: +SKIP
        ...     print(found.pts, found.tag, found.box)
    """

    def __init__(self, network: Network, card: Card, **options: Unpack[Options]) -> None:
        self.network = network
        self.card = card
        self.batch = options.get("batch")
        self.masks = options.get("masks", False)
        self.smooth = options.get("smooth", "offline")
        self.tag = options.get("tag")
        self.presence = options.get("presence")
        self.instances = options.get("instances", False)
        self.color_mean = options.get("color_mean") or card.color_mean
        focus = options.get("focus")
        self.focus = card.focus if focus is None else focus
        chosen = options.get("threshold")
        self.threshold = card.threshold if chosen is None else chosen
        if self.batch is not None and self.batch < 1:
            raise ColocamError(f"--batch {self.batch}: give a number of frames, 1 or more")
        if self.tag is not None and self.tag not in self.tags:
            raise ColocamError(f"--tag {self.tag}: the model does not know it{suggest(self.tag, self.tags)}")
        if self.presence is not None and not 0 <= self.presence <= 1:
            raise ColocamError(f"--presence {self.presence}: give a probability in 0–1")
        if not 0 <= self.threshold <= 1:
            raise ColocamError(f"--threshold {self.threshold}: give a share of the map's maximum in 0–1")
        if self.presence is not None and card.presence is None:
            raise ColocamError("--presence: this model was trained without its calibration: train again")
        if self.smooth not in SMOOTH:
            raise ColocamError(f"--smooth {self.smooth}{suggest(self.smooth, list(SMOOTH))}")
        if self.color_mean not in COLOR_MEANS:
            raise ColocamError(f"--color-mean {self.color_mean}{suggest(self.color_mean, COLOR_MEANS)}")

    @classmethod
    def load(cls, run: str | Path, device: str | None = None, **options: Unpack[Options]) -> "Localizer":
        """Open the model of a run folder, or of an ONNX file made of it; see :func:`open_network`."""
        network, card = open_network(Path(run), device)
        return cls(network, card, **options)

    @property
    def tags(self) -> tuple[str, ...]:
        """The classes this model knows."""
        return self.card.tags

    def __call__(
        self,
        video: str | Path,
        *,
        format: str | None = None,  # noqa: A002 - FFmpeg's word
        **chosen: Unpack[Chosen],
    ) -> Iterator[Localization]:
        """Localise in the frames of a video, in order, holding some of them in memory.

        Args:
            video: a file, a folder of pictures, ``-`` for the standard input, an address (``rtsp://…``), or a camera.
            format: how FFmpeg is to read it, e.g. ``v4l2`` for a camera; it finds out by itself for all else.
            chosen: which frames, see :class:`colocam.video.frame_choice.FrameChoice`: ``every=10``, ``fps=2``,
                ``start=60.0`` and ``end=90.0`` in seconds, ``frames=(100, 200)``. Without any, all.
        """
        from colocam.video.input import VideoInput  # noqa: PLC0415 - frames in memory need no FFmpeg
        from colocam.video.reader import VideoReader  # noqa: PLC0415

        choice = FrameChoice(**chosen)
        # The stream is closed first: its threads read from the reader.
        with (
            VideoReader(VideoInput(str(video), format)) as reader,
            closing(self.stream(reader.frames(choice), live=reader.source.live)) as stream,
        ):
            for _, found in stream:
                yield found

    def stream(
        self, frames: Iterable[VideoFrame], *, live: bool = False
    ) -> Generator[tuple[VideoFrame, Localization], None, None]:
        """The same for frames that are already decoded; each comes back with what was found in it.

        Frames are taken in a thread and the network runs in another, each a batch ahead. A batch is handed on as soon
        as it is there, and with ``smooth="online"`` so is each frame of it: only a batch's own frames are waited for.

        Args:
            frames: in order.
            live: whether they come as they are taken; then, unless told otherwise, a batch is one frame.
        """
        with closing(ahead(self.begun(frames, live=live), 1, "network")) as batches:
            yield from self.boxes(Maps(batch, *answers()) for batch, answers in batches)

    def pictures(self, frames: Iterable[VideoFrame], *, live: bool = False) -> Iterator[Pictures]:
        """First stage: frames in batches, with what the network sees of them."""
        frames, side = iter(frames), self.card.size
        suits: int = 1 if live else getattr(self.network, "batch", BATCH)
        if self.smooth == "online":
            suits = min(suits, BATCH_ONLINE)

        with ThreadPoolExecutor(WORKERS, "resize") as pool:
            while first := list(islice(frames, 1)):
                room = max(1, min(self.batch or suits, BATCH_BYTES // first[0].image.nbytes))
                taken = first + list(islice(frames, room - 1))
                seen = np.empty((len(taken), side, side, 3), np.uint8)
                in_parts(pool, resize, list(zip(taken, seen, strict=True)), WORKERS)
                yield Pictures(taken, seen)

    def begun(
        self, frames: Iterable[VideoFrame], *, live: bool = False
    ) -> Iterator[tuple[Pictures, Callable[[], Answers]]]:
        """Second stage: batches that the network works on; the first stage runs a batch ahead of it in a thread."""
        with closing(ahead(self.pictures(frames, live=live), 1, "frames")) as batches:
            by_shot = self.smooth == "offline" and (self.color_mean == "clip" or self.focus)
            for batch in batches:
                seen = batch._replace(histograms=colour_histograms(batch.pictures)) if by_shot else batch
                yield seen, begin(self.network, seen.pictures, self._finish(seen))

    def _finish(self, batch: Pictures) -> Finish:
        """What is to be done to the maps of a batch: by frame where nothing is waited for, else by shot."""
        each = np.arange(len(batch.pictures))
        shots = each if batch.histograms is None else np.cumsum(find_cuts(batch.histograms), dtype=np.int64)
        colors = {"off": None, "frame": each, "clip": shots}[self.color_mean]
        tag = None if self.tag is None else self.tags.index(self.tag)
        return Finish(colors, shots if self.focus else None, tag)

    def boxes(self, batches: Iterable[Maps]) -> Iterator[tuple[VideoFrame, Localization]]:
        """Third stage: each frame with what was found in it, when its look-ahead has come."""
        observations, wait = self._observations(batches), SMOOTH[self.smooth]
        wanted = None if self.tag is None else self.tags.index(self.tag)
        calibration = Calibration(*(self.card.presence or (0.0, 0.0)))
        lag, share = (0, 1.0) if wait is None else (wait.path, SHARE)
        presence = Presence(calibration, lag, wanted, share)
        alone, together = (each, steady_instances) if self.instances else (single, steady)
        told = -1
        for observation in alone(observations, presence) if wait is None else together(observations, wait, presence):
            found = self._tell(observation)
            if found.box is not None or found.frame != told:  # objects that presence hides leave one row
                told = found.frame
                yield observation.frame, found

    def _observations(self, batches: Iterable[Maps]) -> Iterator[FrameObservation]:
        with closing(ahead(self._looked_at(batches), 1, "contours")) as looked_at:
            for observations in looked_at:
                yield from observations

    def _looked_at(self, batches: Iterable[Maps]) -> Iterator[list[FrameObservation]]:
        """What is seen in each batch; runs in a thread, since Python has to choose among the boxes meanwhile."""
        with ThreadPoolExecutor(LOOKERS, "contours") as pool:
            for batch in batches:
                yield in_parts(pool, partial(self._look, batch), list(range(len(batch.logits))), LOOKERS)

    def _look(self, batch: Maps, part: list[int]) -> list[FrameObservation]:
        """What is seen in some neighbouring frames of a batch; runs in several threads."""
        (frames, pictures, known), logits, maps, peaks = batch
        own = slice(part[0], part[-1] + 1)
        levels = to_8bit(maps[own])
        candidates = (instance_boxes if self.instances else candidate_boxes)(levels, self.threshold)
        if SMOOTH[self.smooth] is None:  # nobody asks for cuts
            histograms = np.empty((len(part), 0), np.float32)
        else:
            histograms = colour_histograms(pictures[own]) if known is None else known[own]
        parts = (frames[own], softmax(logits[own]), heat_of(maps[own]), levels, candidates, histograms, peaks[own])
        return [FrameObservation(*one) for one in zip(*parts, strict=True)]

    def _tell(self, observation: FrameObservation) -> Localization:
        frame, heat = observation.frame, observation.heatmap
        height, width = frame.image.shape[:2]
        probabilities = observation.probabilities
        seen = int(probabilities.argmax()) if observation.tag is None else observation.tag
        best = seen if self.tag is None else self.tags.index(self.tag)
        box, score, lead, mask = None, 0.0, None, None
        shown = self.presence is None or observation.presence >= self.presence
        if observation.box is not None and shown:
            rows, columns = heat.shape
            limits = (columns - 1, rows - 1) * 2
            # Plain numbers: arrays of four take several times as long.
            inside = [min(max(at, 0.0), limit) for at, limit in zip(observation.box.tolist(), limits, strict=True)]
            x1, y1, x2, y2 = map(round, inside)
            score = cv2.mean(heat[y1 : y2 + 1, x1 : x2 + 1])[0]
            box = Box(*scale_boxes(np.array(inside), (columns, rows), (width, height)).tolist())
            lead = None if self.instances else margin(observation.candidates, observation.box)
            if self.masks and observation.choice != NONE:
                found, _, thresholds = observation.candidates
                mask = mask_of_box(
                    observation.levels, thresholds[observation.choice], found[observation.choice], (width, height)
                )
        return Localization(
            frame=frame.index,
            pts=frame.pts,
            tag=self.tags[best],
            probability=float(probabilities[best]),
            box=box,
            score=score,
            heatmap=heat,
            track=observation.track if shown else None,
            presence=None if self.card.presence is None else observation.presence,
            margin=lead,
            mask=mask,
        )
