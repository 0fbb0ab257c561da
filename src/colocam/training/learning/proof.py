"""Whether a new model is better: corrections of held-out videos, and an interval of the difference by video.

Frames of a video resemble each other, so each video counts once, and the interval comes from drawing videos again
(bootstrap). Interpolated frames do not count: nobody has checked them.
"""

from dataclasses import asdict, dataclass
from math import isfinite
from typing import Literal

import numpy as np
import numpy.typing as npt

from colocam.types import Float64Array

HELD_OUT = 0.2
"""Share of the corrected videos that is held out, to compare the new model with the old one."""
LEAST = 3
"""Held-out videos of which an interval is worth something; half of fewer than six are held out."""
MORE = 2
"""Further videos to correct, where the interval includes zero."""
DRAWS = 4000
LEVEL = 0.95

Verdict = Literal["better", "unclear", "too few", "unchanged"]


def held_out_count(videos: int) -> int:
    """How many of so many corrected videos are held out."""
    return max(round(HELD_OUT * videos), min(LEAST, videos // 2))


@dataclass(frozen=True, slots=True)
class Proof:
    """How a new model agrees with held-out corrections, compared with the old one.

    Attributes:
        videos: held-out videos with a corrected box.
        corrections: their frames that a person corrected or accepted, with a box.
        before: mean IoU of the old model, mean over videos; NaN without such a frame.
        after: that of the new model.
        low: lower end of the interval of the difference, 95 % by video; NaN for fewer than :data:`LEAST` videos.
        high: upper end.
        verdict: better: the interval is above zero; unclear: it includes zero; too few: there is none; unchanged: no
            part of learning was kept.
        missing: how many more videos to correct, before it is worth looking again.
    """

    videos: int
    corrections: int
    before: float
    after: float
    low: float
    high: float
    verdict: Verdict
    missing: int

    def line(self) -> str:
        """The proof as one line."""
        many = "1 more video" if self.missing == 1 else f"{self.missing} more videos"
        if self.verdict == "unchanged":
            return "nothing that was learned agrees better with held-out corrections: the old model stays"
        if self.verdict == "too few":
            return f"not enough yet to say whether the new model is better: correct {many}"
        difference = f"{self.after - self.before:+.3f} IoU ({self.low:+.3f} to {self.high:+.3f})"
        of = f"by {self.videos} held-out videos, {difference}"
        if self.verdict == "better":
            return f"the new model is better: {of}"
        return f"not enough yet: {of}, which includes zero: correct {many}"

    def as_json(self) -> dict[str, object]:
        """For ``learning.json``; numbers that there are none of are null."""
        return {name: None if isinstance(v, float) and not isfinite(v) else v for name, v in asdict(self).items()}


def prove(
    before: Float64Array, after: Float64Array, video: npt.NDArray[np.int64], corrected: int, *, changed: bool
) -> Proof:
    """Compare two models.

    Args:
        before: (n,) IoU of the old model in held-out frames that a person corrected or accepted.
        after: (n,) of the new model.
        video: (n,) of each frame.
        corrected: number of corrected videos, held out or not.
        changed: whether anything that was learned was kept.
    """
    videos, row = np.unique(video, return_inverse=True)
    count = len(videos)
    sizes = np.maximum(np.bincount(row, minlength=count), 1)
    means = [np.bincount(row, values, minlength=count) / sizes for values in (before, after)]
    low = high = float("nan")
    if count >= LEAST:
        drawn = np.random.default_rng(0).integers(0, count, (DRAWS, count))
        differences = (means[1] - means[0])[drawn].mean(axis=1)
        low, high = np.quantile(differences, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    needed = corrected + 1
    while held_out_count(needed) < LEAST:
        needed += 1
    missing = needed - corrected if count < LEAST else MORE
    verdict: Verdict = "better" if low > 0 else "unclear"
    if not changed:
        verdict = "unchanged"
    elif count < LEAST:
        verdict, missing = "too few", max(missing, LEAST - count)
    old, new = (float(mean.mean()) if count else float("nan") for mean in means)
    missing = 0 if verdict in {"better", "unchanged"} else missing
    return Proof(count, len(before), old, new, low, high, verdict, missing)
