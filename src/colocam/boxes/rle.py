"""Masks as text: COCO's compressed run lengths, as pycocotools writes them.

A mask is read column by column as runs of 0, 1, 0, …; from the third run on, a run is stored as its difference from
the run two before it. Each number is split into groups of 5 bits, lowest first; bit 6 is set if more follow, and 48
is added to make a printable character.
"""

import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError

_GROUPS = 7
"""Groups of 5 bits that hold a difference of two runs of at most 2³² pixels."""


def encode(mask: npt.NDArray[np.bool_]) -> str:
    """Compressed run lengths of a mask (H, W)."""
    return compress(runs(np.asarray(mask, bool).ravel(order="F")))


def runs(pixels: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Lengths of the runs of 0, 1, 0, … in pixels (n,); the first is 0 where the pixels begin with 1."""
    changes = np.flatnonzero(pixels[1:] != pixels[:-1]) + 1
    first = [0] if pixels.size and pixels[0] else []
    edges = np.concatenate([first, [0], changes, [pixels.size]]).astype(np.int64)
    lengths: npt.NDArray[np.int64] = edges[1:] - edges[:-1]
    return lengths


def decode(text: str, height: int, width: int) -> npt.NDArray[np.bool_]:
    """The mask (height, width) of :func:`encode`."""
    counts = checked_counts(text, height, width)
    values = np.arange(len(counts)) % 2 == 1
    return np.repeat(values, counts).reshape((width, height)).T


def area(text: str, height: int, width: int) -> int:
    """Number of foreground pixels, without unpacking the mask."""
    return int(checked_counts(text, height, width)[1::2].sum())


def checked_counts(text: str, height: int, width: int) -> npt.NDArray[np.int64]:
    """Run lengths of a text, which must add up to an image of this size."""
    counts = expand(text)
    if (counts < 0).any() or counts.sum() != height * width:
        raise ColocamError(f"the mask {text[:20]!r}… does not fit an image of {width}×{height} pixels")
    return counts


def compress(counts: npt.NDArray[np.int64]) -> str:
    """Text of run lengths."""
    steps = counts.copy()
    steps[3:] -= counts[1:-2]
    rest = steps[:, None] >> (5 * np.arange(_GROUPS))  # remaining bits before each group
    groups, after = rest & 0x1F, rest >> 5
    more = np.where(groups & 0x10, after != -1, after != 0)
    needed = np.cumprod(np.pad(more[:, :-1], ((0, 0), (1, 0)), constant_values=True), axis=1).astype(bool)
    codes: npt.NDArray[np.uint8] = ((groups | (more << 5)) + 48)[needed].astype(np.uint8)
    return codes.tobytes().decode("ascii")


def expand(text: str) -> npt.NDArray[np.int64]:
    """Run lengths of a text."""
    codes = np.frombuffer(text.encode("utf-8", "replace"), np.uint8).astype(np.int64) - 48
    if ((codes < 0) | (codes > 63)).any() or (codes.size and codes[-1] & 0x20):
        raise ColocamError(f"the mask {text[:20]!r}… is not in COCO's compressed run lengths")
    if not codes.size:
        return codes
    last = (codes & 0x20) == 0
    starts = np.flatnonzero(np.concatenate([[True], last[:-1]]))
    place = np.arange(codes.size) - np.repeat(starts, np.diff([*starts, codes.size]))
    if place.max() >= _GROUPS:
        raise ColocamError(f"the mask {text[:20]!r}… is not in COCO's compressed run lengths")
    steps = np.add.reduceat((codes & 0x1F) << (5 * place), starts)
    steps -= np.where(codes[last] & 0x10, np.int64(1) << (5 * (place[last] + 1)), 0)
    steps[1::2] = np.cumsum(steps[1::2])
    steps[2::2] = np.cumsum(steps[2::2])
    return steps
