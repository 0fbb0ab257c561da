"""Cuts between shots, from the colours of the frames and roughly where they are.

A cut is where *every* frame just before differs from *every* frame just after, by more than frames around it differ
from their neighbours. So a pan is no cut (its frames all differ alike), and neither is a flash, where the frames
before and after it are the same. Without look-ahead the first frame of a flash cannot be told from a cut.
"""

import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError
from colocam.utils.jit import compiled

Histograms = npt.NDArray[np.float32]
"""(T, 192): for each quarter of the frame and each of R, G, B shares of the pixels in 16 bins; a row adds up to 1."""

BINS = 16
QUARTERS = 4
"""Upper left, upper right, lower left, lower right: two shots of one place often have the same colours elsewhere."""
BEFORE = 3
"""Frames before a cut that must differ from those after it."""
AROUND = 12
"""Frames before the boundary whose changes say what is usual."""
LEAST = 0.3
"""Share of the pixels' colours that a cut changes at the least."""
SPREADS = 6.0
"""How many times their spread a cut stands above the usual changes."""


def colour_histograms(frames: npt.NDArray[np.uint8]) -> Histograms:
    """Describe frames (T, H, W, 3) by their colours.

    A value between the centres of two bins counts for both, in proportion, so that a slight change of light changes a
    histogram slightly, whatever the picture.
    """
    counts = np.zeros((len(frames), QUARTERS, 3, 256), np.int64)
    _count(np.ascontiguousarray(frames), counts)
    shares = counts @ SHARES / max(3 * frames[0, ..., 0].size if len(frames) else 0, 1)
    return shares.reshape(len(frames), QUARTERS * 3 * BINS).astype(np.float32)


@compiled
def _count(frames: npt.NDArray[np.uint8], counts: npt.NDArray[np.int64]) -> None:
    """Add up how often each value occurs in each quarter and channel of frames (T, H, W, 3), in (T, 4, 3, 256)."""
    height, width = frames.shape[1:3]
    middle = width // 2
    for t in range(len(frames)):
        for y in range(height):
            row = frames[t, y]
            for side in range(2):
                own = counts[t, 2 * (2 * y // height) + side]
                red, green, blue = own[0], own[1], own[2]
                for x in range(middle if side else 0, width if side else middle):
                    red[row[x, 0]] += 1
                    green[row[x, 1]] += 1
                    blue[row[x, 2]] += 1


def find_cuts(histograms: Histograms, ahead: int = 2) -> npt.NDArray[np.bool_]:
    """Which frames begin a new shot. The first frame of all is none.

    With d(s, t) = ½ Σ|h_s − h_t|, a cut lies before frame t if min d(t−j, t+i) over j = 1 … :data:`BEFORE` and
    i = 0 … ``ahead`` exceeds both :data:`LEAST` and median + :data:`SPREADS` · MAD of d(s−1, s) over the
    :data:`AROUND` frames s before t and the ``ahead`` after it. A decision looks at nothing else: ``AROUND`` + 1 frames
    back and ``ahead`` frames ahead.

    Args:
        histograms: (T, D), rows that add up to 1.
        ahead: frames of look-ahead; 0 for decisions as frames arrive.

    Returns:
        (T,) bool.
    """
    if ahead < 0:
        raise ColocamError(f"the look-ahead must be 0 or more frames, not {ahead}")
    count = len(histograms)
    cuts = np.zeros(count, bool)
    steps = np.zeros(count)
    steps[1:] = _distance(histograms[1:], histograms[:-1])
    for t in np.flatnonzero(steps > LEAST).tolist():
        before, after = histograms[max(0, t - BEFORE) : t], histograms[t : t + ahead + 1]
        apart = float(_distance(before[:, None], after[None]).min())
        around = np.concatenate([steps[max(1, t - AROUND) : t], steps[t + 1 : t + ahead + 1]])
        cuts[t] = apart > max(LEAST, _usual(around))
    return cuts


class CutFinder:
    """:func:`find_cuts` as frames arrive: each frame is decided ``ahead`` frames later.

    The decisions are those of :func:`find_cuts` over the whole video, however the frames are divided into batches.
    """

    def __init__(self, ahead: int) -> None:
        self.ahead = ahead
        self._known: Histograms | None = None  # of the undecided frames and of AROUND + 1 frames before them
        self._undecided = 0

    def push(self, histograms: Histograms) -> npt.NDArray[np.bool_]:
        """Take the histograms (B, D) of the next frames; return the decisions that are possible now, in order."""
        self._known = histograms if self._known is None else np.concatenate([self._known, histograms])
        self._undecided += len(histograms)
        return self._decide(max(0, self._undecided - self.ahead))

    def finish(self) -> npt.NDArray[np.bool_]:
        """Return the decisions for the last frames of the video."""
        return self._decide(self._undecided)

    def _decide(self, count: int) -> npt.NDArray[np.bool_]:
        if self._known is None or count == 0:
            return np.zeros(0, bool)
        first = len(self._known) - self._undecided
        cuts = find_cuts(self._known, self.ahead)[first : first + count]
        self._undecided -= count
        self._known = self._known[max(0, first + count - AROUND - 1) :]
        return cuts


def _distance(a: Histograms, b: Histograms) -> npt.NDArray[np.float32]:
    distance: npt.NDArray[np.float32] = 0.5 * np.abs(a - b).sum(-1)
    return distance


def _usual(changes: npt.NDArray[np.float64]) -> float:
    """Upper end of the usual changes; 0 where none is known."""
    if not len(changes):
        return 0.0
    middle = float(np.median(changes))
    return middle + SPREADS * float(np.median(np.abs(changes - middle)))


def _bins() -> npt.NDArray[np.float64]:
    """(256, BINS) share of each value in each bin: triangles that overlap by half and add up to 1."""
    at = np.arange(256) * (BINS - 1) / 255
    shares: npt.NDArray[np.float64] = np.maximum(0, 1 - np.abs(at[:, None] - np.arange(BINS)))
    return shares


SHARES = _bins()
