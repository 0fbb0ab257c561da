"""Shot boundaries, from color histograms of the frames, and the windows that shots are divided into.

A cut lies where *every* frame just before differs from *every* frame just after, by more than the frames around it
differ from their neighbors. So a pan is no cut (all its frames differ by about the same), and neither is a flash (the
frames before and after it are equal). Without look-ahead the first frame of a flash looks like a cut.

A window begins at each cut and after every :data:`WINDOW` frames of a shot. The color mean "clip" and the class that
focus uses are computed over a window. Windows depend on the frames alone, not on batch size or device, so that the same
video gives the same maps everywhere; and memory does not grow with the length of a shot.
"""

import cv2
import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError
from colocam.native import kernels

Histograms = npt.NDArray[np.float32]
"""(T, 192): share of the pixels in 16 bins, for each quarter of the frame and each of R, G, B; a row adds up to 1."""

BINS = 16
QUARTERS = 4
"""Upper left, upper right, lower left, lower right: two shots of one scene often differ only in the arrangement."""
BEFORE = 3
"""Frames before a cut that must differ from the frames after it."""
AROUND = 12
"""Frames before the boundary whose changes are the reference."""
LEAST = 0.3
"""Least histogram distance of a cut."""
SPREADS = 6.0
"""Least distance of a cut above the median change, in units of the median absolute deviation (MAD)."""
WINDOW = 32
"""Frames of a window at most."""


def color_histograms(frames: npt.NDArray[np.uint8]) -> Histograms:
    """Color histograms of frames (T, H, W, 3).

    A value between the centers of two bins is divided between them in proportion, so that a slight change of light
    changes a histogram only slightly.
    """
    counts = np.zeros((len(frames), QUARTERS, 3, 256), np.int64)
    (count_by_opencv if kernels is None else kernels.count_colors)(np.ascontiguousarray(frames), counts)
    shares = counts @ SHARES / max(3 * frames[0, ..., 0].size if len(frames) else 0, 1)
    return shares.reshape(len(frames), QUARTERS * 3 * BINS).astype(np.float32)


def count_by_opencv(frames: npt.NDArray[np.uint8], counts: npt.NDArray[np.int64]) -> None:
    """Count the values 0–255 in each quarter and channel of frames (T, H, W, 3); sets ``counts`` (T, 4, 3, 256)."""
    y, x = -(-frames.shape[1] // 2), frames.shape[2] // 2
    for frame, counts_of_frame in zip(frames, counts, strict=True):
        for quarter, part in enumerate((frame[:y, :x], frame[:y, x:], frame[y:, :x], frame[y:, x:])):
            for channel in range(3 if part.size else 0):
                counts_of_frame[quarter, channel] = cv2.calcHist([part], [channel], None, [256], [0, 256]).ravel()


def find_cuts(histograms: Histograms, ahead: int = 2) -> npt.NDArray[np.bool_]:
    """Which frames begin a new shot; the first frame of the video is not marked.

    With d(s, t) = ½ Σ|h_s − h_t|, a cut lies before frame t if min d(t−j, t+i) over j = 1 … :data:`BEFORE` and
    i = 0 … ``ahead`` exceeds both :data:`LEAST` and median + :data:`SPREADS` · MAD of d(s−1, s) over the
    :data:`AROUND` frames s before t and the ``ahead`` after it. So a decision depends on ``AROUND`` + 1 frames before
    and ``ahead`` frames after it.

    Args:
        histograms: (T, D), rows that add up to 1.
        ahead: frames of look-ahead; 0 for decisions as frames arrive.

    Returns:
        (T,) bool.
    """
    if ahead < 0:
        raise ColocamError(f"ahead must be 0 or more frames, got {ahead}")
    count = len(histograms)
    cuts = np.zeros(count, bool)
    steps = np.zeros(count)
    steps[1:] = _distance(histograms[1:], histograms[:-1])
    for t in np.flatnonzero(steps > LEAST).tolist():
        before, after = histograms[max(0, t - BEFORE) : t], histograms[t : t + ahead + 1]
        apart = float(_distance(before[:, None], after[None]).min())
        around = np.concatenate([steps[max(1, t - AROUND) : t], steps[t + 1 : t + ahead + 1]])
        cuts[t] = apart > max(LEAST, _bound(around))
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


def window_starts(cuts: npt.NDArray[np.bool_], position: int = 0) -> tuple[npt.NDArray[np.bool_], int]:
    """Which frames begin a window.

    Args:
        cuts: (T,) whether a frame begins a new shot.
        position: frames of the present shot that came before these T frames; 0: a shot begins here.

    Returns:
        (T,) bool, and the position after the last frame.
    """
    index = np.arange(len(cuts))
    shot = np.maximum.accumulate(np.where(cuts, index, -position)) if len(cuts) else index
    frames_into_shot = index - shot
    after = int(frames_into_shot[-1]) + 1 if len(cuts) else position
    return frames_into_shot % WINDOW == 0, after


def _distance(a: Histograms, b: Histograms) -> npt.NDArray[np.float32]:
    distance: npt.NDArray[np.float32] = 0.5 * np.abs(a - b).sum(-1)
    return distance


def _bound(changes: npt.NDArray[np.float64]) -> float:
    """Median + :data:`SPREADS` · MAD of the changes; 0 without any."""
    if not len(changes):
        return 0.0
    middle = float(np.median(changes))
    return middle + SPREADS * float(np.median(np.abs(changes - middle)))


def _bins() -> npt.NDArray[np.float64]:
    """(256, BINS) share of each value in each bin: overlapping triangles that add up to 1."""
    at = np.arange(256) * (BINS - 1) / 255
    shares: npt.NDArray[np.float64] = np.maximum(0, 1 - np.abs(at[:, None] - np.arange(BINS)))
    return shares


SHARES = _bins()
