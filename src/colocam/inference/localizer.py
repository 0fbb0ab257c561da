"""Localizer: open a trained model, put in a video, get a :class:`Localization` per frame."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypedDict, Unpack

import cv2
import numpy as np
import torch

from colocam.boxes.candidates import candidate_boxes
from colocam.boxes.extract import mask_of_box
from colocam.boxes.quantize import to_8bit
from colocam.boxes.scale import scale_boxes
from colocam.boxes.tracks import NONE
from colocam.data.cuts import colour_histograms
from colocam.data.video import VideoFrame, decode
from colocam.errors import ColocamError, suggest
from colocam.inference.network import Network, TorchNetwork
from colocam.inference.steady import OFFLINE, ONLINE, LookAhead, Sight, single, steady
from colocam.models.store import Card, load_model
from colocam.presence import SHARE, Calibration, Presence
from colocam.run import choose_device
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
    """

    batch: int
    masks: bool
    smooth: str
    tag: str | None
    presence: float | None


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
        if self.tag is not None and self.tag not in self.tags:
            raise ColocamError(f"--tag {self.tag}: the model does not know it{suggest(self.tag, self.tags)}")
        if self.presence is not None and not 0 <= self.presence <= 1:
            raise ColocamError(f"--presence {self.presence}: give a probability in 0–1")
        if self.presence is not None and card.presence is None:
            raise ColocamError("--presence: this model was trained without its calibration: train again")
        if self.smooth not in SMOOTH:
            raise ColocamError(f"--smooth {self.smooth}{suggest(self.smooth, list(SMOOTH))}")

    @classmethod
    def load(cls, run: str | Path, device: str | None = None, **options: Unpack[Options]) -> "Localizer":
        """Open the model of a run folder; without a device, the GPU if there is one."""
        model = load_model(Path(run))
        return cls(TorchNetwork(model.net, choose_device(device)), model.card, **options)

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
        calibration = Calibration(*(self.card.presence or (0.0, 0.0)))
        lag, share = (0, 1.0) if ahead is None else (ahead.path, SHARE)
        presence = Presence(calibration, lag, wanted, share)
        for sight in single(sights, presence) if ahead is None else steady(sights, ahead, presence):
            yield sight.frame, self._tell(sight)

    def _sights(self, frames: Iterable[VideoFrame]) -> Iterator[Sight]:
        frames = iter(frames)
        while batch := list(islice(frames, self.batch)):
            yield from self._see(batch)

    def _see(self, batch: list[VideoFrame]) -> list[Sight]:
        size = self.card.size
        resized = np.stack([cv2.resize(f.image, (size, size), interpolation=cv2.INTER_AREA) for f in batch])
        pictures = resized.astype(np.uint8, copy=False)
        logits, maps, peaks = self.network(pictures)
        levels = to_8bit(torch.from_numpy(maps)).numpy()
        candidates = candidate_boxes(levels, self.card.threshold)
        parts = (logits, maps, levels, candidates, colour_histograms(pictures), peaks)
        return [Sight(*one) for one in zip(batch, *parts, strict=True)]

    def _tell(self, sight: Sight) -> Localization:
        frame, heat = sight.frame, sight.heatmap
        height, width = frame.image.shape[:2]
        probabilities = torch.from_numpy(sight.logits).softmax(0)
        best = int(probabilities.argmax()) if self.tag is None else self.tags.index(self.tag)
        box, score, mask = None, 0.0, None
        shown = self.presence is None or sight.presence >= self.presence
        if sight.box is not None and shown:
            rows, columns = heat.shape
            inside = np.clip(sight.box, 0, (columns - 1, rows - 1) * 2)
            x1, y1, x2, y2 = np.rint(inside).astype(int)
            score = float(heat[y1 : y2 + 1, x1 : x2 + 1].mean())
            box = Box(*scale_boxes(inside, (columns, rows), (width, height)).tolist())
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
            presence=None if self.card.presence is None else sight.presence,
            mask=mask,
        )
