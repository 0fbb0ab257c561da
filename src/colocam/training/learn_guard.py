"""The guard of learning from corrections: compares models on videos that are held out."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch.nn.functional as F

from colocam.models.model_file import Model
from colocam.run import Run
from colocam.training.learn_agreement import Agreement, Observation, agreement, observe
from colocam.training.learn_frames import CorrectedFrames
from colocam.training.learn_head import class_head, head_features
from colocam.training.learn_report import Stage


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model and what it finds in the corrected frames; None: not looked yet."""

    model: Model
    seen: Observation | None = None


class Guard:
    """Compares models on held-out corrections, and keeps the better one."""

    def __init__(self, run: Run, frames: CorrectedFrames) -> None:
        self.run, self.frames, self.stages = run, frames, list[Stage]()
        self.clock = time.perf_counter()

    def start(self, model: Model) -> Candidate:
        """The model so far, observed."""
        found = self.observed(Candidate(model))
        self._add("before", found, kept=True)
        return found

    def keep(
        self, name: str, old: Candidate, new: Candidate, *, presence: bool = False, labels: bool = False
    ) -> Candidate:
        """The new candidate, unless it agrees less than the old one with the held-out corrections.

        Presence must be measured, unless nothing is held out: without a calibration so far, against one half.
        """
        new = self.observed(new)
        before, after = self.agreement(old), self.agreement(new)
        worse = after.iou < before.iou
        if presence:
            least = math.log(2) if old.model.card.presence is None else before.presence_loss
            worse = bool(self.frames.held_out.any()) and not after.presence_loss <= least
        if labels:
            worse = worse or self._class_loss(new.model) > self._class_loss(old.model)
        self._add(name, new, kept=not worse)
        return old if worse else new

    def observed(self, one: Candidate) -> Candidate:
        """The candidate with what it finds in the corrected frames."""
        if one.seen is not None:
            return one
        return Candidate(one.model, observe(one.model, self.frames, self.run.config.frames, self.run.device))

    def best(self, trained: Sequence[Candidate]) -> Candidate:
        """The candidate whose boxes agree best."""
        return max(trained, key=lambda one: self.agreement(one).iou)

    def agreement(self, one: Candidate) -> Agreement:
        """How well an observed candidate agrees with the held-out corrections."""
        held = self.frames.held_out
        assert one.seen is not None
        return agreement(one.model.card, one.seen.part(held), self.frames.part(held))

    def _class_loss(self, model: Model) -> float:
        """Cross-entropy of the classes of held-out frames with an object."""
        part = self.frames.part(self.frames.held_out & self.frames.present)
        if not len(part):
            return 0.0
        size, device = self.run.config.frames.crop, self.run.device
        net = model.net.to(device).eval()
        head, features = class_head(net), head_features(net, part.samples, size, device)
        logits = features @ head.weight.double().T + head.bias.double()
        return float(F.cross_entropy(logits, part.samples.classes.to(device)))

    def _add(self, name: str, one: Candidate, *, kept: bool) -> None:
        now = time.perf_counter()
        self.stages.append(Stage(name, self.agreement(one), kept, now - self.clock))
        self.clock = now
