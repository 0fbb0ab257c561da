"""Localizer: open a trained model, put in a video, get a :class:`Localization` per frame."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypedDict, Unpack

import cv2
import numpy as np
import numpy.typing as npt

from colocam.boxes.candidates import candidate_boxes
from colocam.boxes.extract import mask_of_box
from colocam.boxes.instances import instance_boxes
from colocam.boxes.quantize import to_8bit
from colocam.boxes.scale import scale_boxes
from colocam.boxes.tracks import NONE, margin
from colocam.card import Card
from colocam.data.cuts import colour_histograms
from colocam.data.video import VideoFrame, decode
from colocam.errors import ColocamError, suggest
from colocam.inference.follow import each, steady_instances
from colocam.inference.network import Network, open_network
from colocam.inference.steady import OFFLINE, ONLINE, LookAhead, Sight, single, steady
from colocam.presence import Calibration, Presence, uncalibrated
from colocam.types import Box, Localization

SMOOTH: dict[str, LookAhead | None] = {"offline": OFFLINE, "online": ONLINE, "none": None}


class Options(TypedDict, total=False):
    """How a :class:`Localizer` works.

    Attributes:
        batch: frames that the model sees at once, 16 by default.
        masks: also give outlines.
        smooth: ``offline`` (the default) makes boxes steady with some frames of look-ahead, ``online`` with none;
            ``none`` gives the box of each frame by itself.
        tag: what the video is known to show; without it, what the classifier sees in it.
        presence: give no box where the probability of presence is below this; by default all boxes are given.
        threshold: τ relative to each map's maximum, 0–1; by default the one stored with the model.
        instances: give every blob above the threshold for itself, a localization per object, one without a box for
            frames without any.
    """

    batch: int
    masks: bool
    smooth: str
    tag: str | None
    presence: float | None
    threshold: float | None
    instances: bool


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
        self.batch = options.get("batch", 16)
        self.masks = options.get("masks", False)
        self.smooth = options.get("smooth", "offline")
        self.tag = options.get("tag")
        self.presence = options.get("presence")
        self.instances = options.get("instances", False)
        chosen = options.get("threshold")
        self.threshold = card.threshold if chosen is None else chosen
        if self.tag is not None and self.tag not in self.tags:
            raise ColocamError(f"--tag {self.tag}: the model does not know it{suggest(self.tag, self.tags)}")
        if self.presence is not None and not 0 <= self.presence <= 1:
            raise ColocamError(f"--presence {self.presence}: give a probability in 0–1")
        if not 0 <= self.threshold <= 1:
            raise ColocamError(f"--threshold {self.threshold}: give a share of the map's maximum in 0–1")
        if self.smooth not in SMOOTH:
            raise ColocamError(f"--smooth {self.smooth}{suggest(self.smooth, list(SMOOTH))}")

    @classmethod
    def load(cls, run: str | Path, device: str | None = None, **options: Unpack[Options]) -> "Localizer":
        """Open the model of a run folder, or of an ONNX file made of it; see :func:`open_network`."""
        network, card = open_network(Path(run), device)
        return cls(network, card, **options)

    @property
    def tags(self) -> tuple[str, ...]:
        """The classes this model knows."""
        return self.card.tags

    def __call__(self, video: str | Path) -> Iterator[Localization]:
        """Localise in every frame of a video file, in order, holding some frames of it in memory."""
        for _, found in self.stream(decode(Path(video))):
            yield found

    def stream(self, frames: Iterable[VideoFrame]) -> Iterator[tuple[VideoFrame, Localization]]:
        """The same for frames that are already decoded; each comes back with what was found in it."""
        sights, ahead = self._sights(frames), SMOOTH[self.smooth]
        wanted = None if self.tag is None else self.tags.index(self.tag)
        calibration = Calibration(*self.card.presence) if self.card.presence else uncalibrated(len(self.tags))
        presence = Presence(calibration, 0 if ahead is None else ahead.path, wanted)
        alone, together = (each, steady_instances) if self.instances else (single, steady)
        told = -1
        for sight in alone(sights, presence) if ahead is None else together(sights, ahead, presence):
            found = self._tell(sight)
            if found.box is not None or found.frame != told:  # objects that presence hides leave one row
                told = found.frame
                yield sight.frame, found

    def _sights(self, frames: Iterable[VideoFrame]) -> Iterator[Sight]:
        frames = iter(frames)
        while batch := list(islice(frames, self.batch)):
            yield from self._see(batch)

    def _see(self, batch: list[VideoFrame]) -> list[Sight]:
        size = self.card.size
        resized = np.stack([cv2.resize(f.image, (size, size), interpolation=cv2.INTER_AREA) for f in batch])
        pictures = resized.astype(np.uint8, copy=False)
        logits, maps = self.network(pictures)
        levels = to_8bit(maps)
        boxes_of = instance_boxes if self.instances else candidate_boxes
        parts = (logits, maps, levels, boxes_of(levels, self.threshold), colour_histograms(pictures))
        return [Sight(*one) for one in zip(batch, *parts, strict=True)]

    def _tell(self, sight: Sight) -> Localization:
        frame, heat = sight.frame, sight.heatmap
        height, width = frame.image.shape[:2]
        probabilities = _softmax(sight.logits)
        best = int(probabilities.argmax()) if self.tag is None else self.tags.index(self.tag)
        box, score, lead, mask = None, 0.0, None, None
        shown = self.presence is None or sight.presence >= self.presence
        if sight.box is not None and shown:
            rows, columns = heat.shape
            inside = np.clip(sight.box, 0, (columns - 1, rows - 1) * 2)
            x1, y1, x2, y2 = np.rint(inside).astype(int)
            score = float(heat[y1 : y2 + 1, x1 : x2 + 1].mean())
            box = Box(*scale_boxes(inside, (columns, rows), (width, height)).tolist())
            lead = None if self.instances else margin(sight.candidates, sight.box)
            if self.masks and sight.choice != NONE:
                found, _, thresholds = sight.candidates
                mask = mask_of_box(sight.levels, thresholds[sight.choice], found[sight.choice], (width, height))
        return Localization(
            frame=frame.index,
            pts=frame.pts,
            tag=self.tags[best],
            probability=float(probabilities[best]),
            box=box,
            score=score,
            heatmap=heat,
            track=sight.track if shown else None,
            presence=sight.presence,
            margin=lead,
            mask=mask,
        )


def _softmax(logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Probabilities (K,) of logits (K,)."""
    odds = np.exp(logits - logits.max())
    probabilities: npt.NDArray[np.float32] = odds / odds.sum()
    return probabilities
