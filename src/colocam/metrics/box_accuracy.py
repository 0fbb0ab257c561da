"""Box accuracies of the localisation literature besides CorLoc: Top-k classes, MaxBoxAcc, MaxBoxAccV2."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from colocam.boxes.extract import contour_box, contours_of
from colocam.boxes.quantize import Maps, checked_levels
from colocam.metrics.hits import Numbers, best_overlaps, check_counts, hits_of_overlaps

V2_OVERLAPS = (0.3, 0.5, 0.7)


def top_k(logits: npt.NDArray[np.floating], tags: npt.NDArray[np.int64], k: int) -> npt.NDArray[np.bool_]:
    """Is the tag (N,) among the k classes of the highest logits (N, C)? Equal logits count against the tag."""
    own = np.take_along_axis(logits, tags[:, None], axis=1)
    right: npt.NDArray[np.bool_] = (logits >= own).sum(1) <= k
    return right


def max_box_acc(hits: npt.NDArray[np.bool_]) -> float:
    """Share of right frames at the best threshold, mean over overlaps, in percent.

    Args:
        hits: (N, T) gives MaxBoxAcc; (3, N, T) of ``any_contour_hits`` gives MaxBoxAccV2.
    """
    return 100 * float(hits.mean(-2).max(-1).mean())


def any_contour_hits(
    maps: Maps,
    boxes: Sequence[Numbers],
    thresholds: Sequence[float] | npt.NDArray[np.floating],
    iou: Sequence[float] = V2_OVERLAPS,
) -> npt.NDArray[np.bool_]:
    """Like ``box_hits``, but a frame is right if *any* contour's box is (Choe et al., 2020, second version).

    Contours are searched once for each level of a map: tens of milliseconds a smooth map, seconds for noise.

    Args:
        maps: (B, H, W), floats in 0–1 or uint8 levels.
        boxes: for each map its true boxes (k, 4), k ≥ 1, in map pixels.
        thresholds: (T,) values of τ in 0–1.
        iou: (n,) least overlaps of a right box.

    Returns:
        (n, B, T).
    """
    levels = checked_levels(maps)
    check_counts(len(levels), boxes)
    overlaps = np.zeros((len(levels), 256))
    for i, (map_, true) in enumerate(zip(levels, boxes, strict=True)):
        last = int(map_.max())
        for level in range(last):
            overlaps[i, level] = best_overlaps(_contour_boxes(map_ > level)[None], [true]).max()
        overlaps[i, last:] = best_overlaps(np.zeros((1, 1, 4)), [true])
    return hits_of_overlaps(overlaps, levels.max((1, 2), initial=0), thresholds, iou)


def _contour_boxes(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    return np.array([contour_box(contour, mask.shape) for contour in contours_of(mask)])
