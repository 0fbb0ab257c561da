"""Thresholds and presence from corrections at once, for a page that learns while a person corrects."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from colocam.config.card import Card
from colocam.labels.corrections import Correction
from colocam.labels.imported import LeftOut
from colocam.models.model_file import load_model
from colocam.run import open_run
from colocam.training.learn_agreement import Observation, learnt_card, observe
from colocam.training.learn_frames import CorrectedFrames, corrected_frames
from colocam.types import Float64Array, Levels


class QuickLearner:
    """Chooses thresholds and presence; keeps what the model found in the frames it has seen.

    >>> quick = QuickLearner("runs/pets")                     # doctest: +SKIP
    >>> card = quick(read_corrections("corrections.csv"))     # doctest: +SKIP

    The card is that of the model with other thresholds and another calibration of presence. To use it, pass it on:
    ``Localizer(network, card)``, or write it with ``colocam.models.model_file.save_model``. The network passes over
    frames with boxes that were not seen before; the choice itself takes milliseconds. Nothing is held out: a model to
    keep comes from :func:`colocam.training.learn.learn`.

    Args:
        run: run folder with a trained model.
        device: ``cpu`` or ``cuda``; None: the GPU, if there is one.
    """

    def __init__(self, run: str | Path, device: str | None = None) -> None:
        self.run = open_run(run, device)
        self.model = load_model(self.run.folder)
        self._seen: dict[tuple[object, ...], tuple[Levels, float, Float64Array]] = {}

    def __call__(self, corrections: Sequence[Correction]) -> Card:
        """The card that agrees best with all corrections so far; those that cannot be found are left out."""
        frames = corrected_frames(self.run, corrections, LeftOut())
        return learnt_card(
            self.model.card, self._observe(frames), frames, threshold=True, per_class=True, presence=True
        )

    def _observe(self, frames: CorrectedFrames) -> Observation:
        told = list(zip(frames.samples.where(), frames.classes.tolist(), frames.boxes, strict=True))
        mates: defaultdict[Path, list[tuple[int, int]]] = defaultdict(list)
        if self.model.card.color_mean == "clip":  # then the other corrected frames of a clip change a map, too
            for (clip, frame), tag, _ in told:
                mates[clip.file].append((frame, tag))
        places = [(clip.file, frame, tag, boxes.tobytes(), *mates[clip.file]) for (clip, frame), tag, boxes in told]
        new = np.array([place not in self._seen for place in places])
        if new.any():
            found = observe(self.model, frames.part(new), self.run.config.frames, self.run.device)
            fresh = [place for place, is_new in zip(places, new.tolist(), strict=True) if is_new]
            rows = zip(found.levels, found.peaks.tolist(), found.right, strict=True)
            self._seen |= dict(zip(fresh, rows, strict=True))
        self._seen = {place: self._seen[place] for place in places}
        levels, peaks, right = zip(*(self._seen[place] for place in places), strict=True)
        return Observation(np.stack(levels), np.array(peaks), np.stack(right))
