"""The pipeline from frames to rows: the stages in their order, each in a thread, connected as the settings say.

Tests: tests/inference/test_localizer.py, tests/inference/test_localize_motion.py, tests/inference/test_same_boxes.py.
"""

from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from threading import Event
from typing import Any

import numpy as np

from colocam.boxes.candidates import Candidates, Chooser, find_chooser, instance_boxes
from colocam.config.card import Card
from colocam.config.options import Options
from colocam.errors import ArgumentError, suggest
from colocam.inference.passes import AnyNetwork, MapSettings
from colocam.inference.rows import (
    OneMask,
    Refiner,
    RowSettings,
    SeveralMasks,
    make_rows,
    over_time,
    refine_windows,
)
from colocam.inference.second_look import HIGHER, Enlarger, SecondLook, SeveralLooks, look_again
from colocam.inference.stages import (
    find_candidates,
    postprocess_frames,
    postprocess_windows,
    read_passes,
    submit_passes,
)
from colocam.maps.postprocess import array_classes_of
from colocam.maps.prior import Prior
from colocam.segment.segmenter import Segmenter
from colocam.temporal.cuts import WINDOW, CutFinder
from colocam.temporal.motion import WeighByPast, WeighWindows
from colocam.temporal.presence import Calibration
from colocam.temporal.smoothing import LOOK_AHEAD, Shots
from colocam.types import ColorMean, Float32Array, Levels, Localization, VideoFrame
from colocam.utils.prefetch import ahead

ROWS_ONLINE = 8
"""Frames of one network pass at most with ``smooth="online"``, where results are wanted as frames arrive."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a model is run: its options, and what its card says where they say nothing.

    Attributes:
        options: of whoever runs it.
        card: of the model.
        tag: index of the class that the videos show; None: the class that the classifier finds.
        color_mean: which frames complete each other's maps by color.
        focus: power of the focus on a class; 0: none.
        chooser: chooses the box among a map's contours.
        threshold: τ, where classes have none of their own.
        motion: whether maps are weighed by motion.
        looks: at each frame.
    """

    options: Options
    card: Card
    tag: int | None
    color_mean: ColorMean
    focus: float
    chooser: Chooser
    threshold: float
    motion: bool
    looks: int

    @classmethod
    def of(cls, options: Options, card: Card, *, refined: bool) -> "Settings":
        """The settings of a model, with or without a segmenter that refines its boxes.

        Raises:
            ArgumentError: an option does not suit the model.
        """
        if options.tag is not None and options.tag not in card.tags:
            raise ArgumentError(
                "tag", f"{options.tag}: the model does not know this tag{suggest(options.tag, card.tags)}"
            )
        if options.presence is not None and card.presence is None:
            raise ArgumentError("presence", "cannot be used: this model has no calibration of presence: train again")
        if refined and options.smooth != "offline":
            raise ArgumentError(
                "refine", f"chooses masks over the whole shot: it needs smooth offline, got {options.smooth}"
            )
        chooser = find_chooser(options.chooser or card.chooser)
        by_shot = chooser.by_shot and options.smooth != "none" and not options.instances
        return cls(
            options=options,
            card=card,
            tag=None if options.tag is None else card.tags.index(options.tag),
            color_mean=options.color_mean or card.color_mean,
            focus=card.focus_power(on=options.focus),
            chooser=chooser,
            threshold=card.threshold if options.threshold is None else options.threshold,
            motion=by_shot if options.motion is None else options.motion,
            looks=options.looks or (1 if refined else card.looks),
        )

    @property
    def boxes_of(self) -> Callable[[Levels, float], list[Candidates]]:
        """(maps, τ) → the candidates of each map."""
        return instance_boxes if self.options.instances else self.chooser.candidates

    def threshold_of(self, logits: Float32Array) -> list[float]:
        """τ of each of B frames from their logits (B, K): that of the class of their window, or of each by itself."""
        higher = HIGHER if self.options.instances and self.looks > 1 and self.options.threshold is None else 1.0
        of_classes = self.card.class_thresholds
        if of_classes is None or self.options.threshold is not None:
            return [min(higher * self.threshold, 1.0)] * len(logits)
        windows = np.arange(len(logits))  # each frame by itself; offline, the frames are one window
        windows = np.zeros_like(windows) if self.options.smooth == "offline" else windows
        return [min(higher * of_classes[tag], 1.0) for tag in array_classes_of(logits, windows, self.tag).tolist()]


def run_pipeline(
    frames: Iterable[VideoFrame],
    network: AnyNetwork,
    settings: Settings,
    segmenter: Segmenter | None,
    prior: Prior | None,
    *,
    live: bool,
    images: bool,
    shots: Shots | None,
    passed: Callable[[int], object],
    stopping: tuple[Event, ...],
) -> Generator[tuple[VideoFrame, Localization], None, None]:
    """Localize in frames; see :meth:`colocam.inference.localizer.Localizer.stream`, also for the last arguments."""
    windows = settings.options.smooth == "offline"
    look_ahead = LOOK_AHEAD[settings.options.smooth]
    rows = network.rows
    if live:
        rows = 1
    elif settings.options.smooth == "online":
        rows = min(rows, ROWS_ONLINE)
    read = read_passes(
        frames,
        settings.card.size,
        rows,
        settings.options.batch,
        histograms=look_ahead is not None,
        grays=settings.motion,
        images=images,
        prior=prior,
    )
    ended = Event()
    either = (ended, *stopping)
    how = MapSettings(settings.color_mean, settings.focus, settings.tag, network, either)
    counted = passed if segmenter is None else int
    submitted = submit_passes(ahead(read, 1, "resize"), network, counted, windows=windows)
    postprocess = postprocess_windows if windows else postprocess_frames
    cuts = CutFinder(look_ahead.cuts if look_ahead else 0)
    mapped = postprocess(ahead(submitted, max(1, WINDOW // rows), "network"), cuts, how)
    motion: WeighWindows | WeighByPast | None = None
    if settings.motion:
        motion = WeighWindows() if windows else WeighByPast()
    observed = find_candidates(ahead(mapped, 1, "maps"), settings.threshold_of, settings.boxes_of, motion)
    if settings.looks > 1:
        enlarger = Enlarger(how, rows, windows=windows, prior=settings.card.prior_decoder is not None)
        second: SecondLook | SeveralLooks = SecondLook(enlarger, settings.threshold_of, settings.boxes_of)
        if settings.options.instances:
            second = SeveralLooks(enlarger, settings.threshold_of, Calibration.of(settings.card.presence))
        observed = look_again(ahead(observed, 1, "first looks"), second, settings.looks - 1)
    if segmenter is not None:
        refiner: Refiner[Any] = OneMask(segmenter)
        if settings.options.instances:
            refiner = SeveralMasks(segmenter, network, settings.tag)
        observed = refine_windows(ahead(observed, 1, "boxes"), refiner, passed, either)
    name = "boxes" if segmenter is None else "masks"
    with closing(ahead(observed, 1, name, on_stop=ended.set)) as batches:
        refined = None if segmenter is None else segmenter.name
        of_rows = RowSettings(settings.options, settings.card, settings.tag, refined)
        yield from make_rows(over_time(chain.from_iterable(batches), shots, of_rows), of_rows)
