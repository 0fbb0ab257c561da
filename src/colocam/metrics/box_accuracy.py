"""Accuracies of the localisation literature besides CorLoc: top-k classes, MaxBoxAcc."""

import numpy as np
import numpy.typing as npt

V2_OVERLAPS = (0.3, 0.5, 0.7)
"""Least IoUs of MaxBoxAccV2 (Choe et al., 2020)."""


def top_k(logits: npt.NDArray[np.floating], tags: npt.NDArray[np.int64], k: int) -> npt.NDArray[np.bool_]:
    """Whether the tag (N,) is among the k classes with the highest logits (N, C).

    A tie counts against the tag: a classifier with equal logits for all classes is never right.
    """
    own = np.take_along_axis(logits, tags[:, None], axis=1)
    right: npt.NDArray[np.bool_] = (logits >= own).sum(1) <= k
    return right


def max_box_acc(hits: npt.NDArray[np.bool_]) -> dict[str, float]:
    """Share of right frames in percent at the best threshold, by least IoU, and their ``mean``.

    Args:
        hits: (3, N, T) at each IoU of ``V2_OVERLAPS``; the second gives MaxBoxAcc.
    """
    each = 100 * hits.mean(1).max(1)
    return {**dict(zip(map(str, V2_OVERLAPS), each.tolist(), strict=True)), "mean": float(each.mean())}
