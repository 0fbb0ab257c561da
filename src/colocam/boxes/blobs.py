"""The largest blob of a mask and its bounding box, on whatever device the mask is."""

import cv2
import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor


def largest_blob(mask: Tensor) -> Tensor:
    """Keep the largest 4-connected component of each (B, H, W) bool mask; of equals, the one that ends lowest right.

    On the CPU by OpenCV. On a GPU every pixel takes the largest pixel number of its run, row by row and column by
    column, until runs that touch agree.
    """
    if mask.device.type == "cpu":
        return torch.from_numpy(np.stack([_largest_by_opencv(one) for one in mask.numpy()]))
    return _largest_by_spreading(mask)


def bounding_box(mask: Tensor) -> Tensor:
    """Fill the bounding box of each (B, H, W) bool mask."""
    rows, columns = mask.any(2), mask.any(1)

    def between(hit: Tensor) -> Tensor:
        return (hit.cumsum(1) > 0) & (hit.flip(1).cumsum(1) > 0).flip(1)

    return between(rows)[:, :, None] & between(columns)[:, None, :]


def _largest_by_opencv(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    _, labels, stats, _ = cv2.connectedComponentsWithStats(mask.view(np.uint8), connectivity=4)
    areas = stats[:, cv2.CC_STAT_AREA]
    areas[0] = 0  # the background
    ties = labels[np.isin(labels, np.flatnonzero(areas == areas.max()))]
    found: npt.NDArray[np.bool_] = (labels == ties[-1]) & mask
    return found


def _largest_by_spreading(mask: Tensor) -> Tensor:
    batch, height, width = mask.shape
    numbers = torch.arange(1, height * width + 1, device=mask.device).view(1, height, width)
    labels = torch.where(mask, numbers, 0)
    while True:
        spread = _spread_along_rows(labels, mask)
        spread = _spread_along_rows(spread.transpose(1, 2), mask.transpose(1, 2)).transpose(1, 2)
        if torch.equal(spread, labels):
            break
        labels = spread
    counts = torch.zeros((batch, height * width + 1), dtype=torch.int64, device=mask.device)
    counts.scatter_add_(1, labels.flatten(1), mask.flatten(1).long())
    largest = counts.shape[1] - 1 - counts.flip(1).argmax(1)
    return mask & (labels == largest[:, None, None])


def _spread_along_rows(labels: Tensor, mask: Tensor) -> Tensor:
    """Give each pixel the largest label of its unbroken horizontal run."""
    size = labels.shape[1] * labels.shape[2] + 1
    # a cumulative maximum never falls, so a growing offset per run keeps it from leaking into the next run
    starts = mask & ~F.pad(mask, (1, 0))[..., :-1]
    offset = starts.cumsum(2) * size
    forward = torch.where(mask, labels + offset, 0).cummax(2).values
    forward = torch.where(mask, forward - offset, 0)
    ends = mask & ~F.pad(mask, (0, 1))[..., 1:]
    offset = ends.flip(2).cumsum(2) * size
    flipped_mask = mask.flip(2)
    backward = torch.where(flipped_mask, forward.flip(2) + offset, 0).cummax(2).values
    return torch.where(flipped_mask, backward - offset, 0).flip(2)
