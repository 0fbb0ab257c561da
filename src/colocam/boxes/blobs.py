"""The largest connected region of a mask and its bounding box, for pixel seeds, on the device of the mask.

On a GPU the region is found by union-find kernels, so that the gradient-free part of a training step never waits for
the host and can be recorded as a CUDA graph.
"""

from importlib.util import find_spec

import cv2
import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

_BLOCK = 256


def largest_blob(mask: Tensor) -> Tensor:
    """Keep the largest 4-connected region of each (B, H, W) bool mask; of equal ones, the first in reading order."""
    if mask.is_cuda and find_spec("triton") is not None:
        return _largest_on_gpu(mask)
    return torch.from_numpy(np.stack([_largest_on_cpu(one) for one in mask.cpu().numpy()])).to(mask.device)


def bounding_box(mask: Tensor) -> Tensor:
    """Fill the bounding box of each (B, H, W) bool mask."""
    rows, columns = mask.any(2), mask.any(1)

    def between(hit: Tensor) -> Tensor:
        return (hit.cumsum(1) > 0) & (hit.flip(1).cumsum(1) > 0).flip(1)

    return between(rows)[:, :, None] & between(columns)[:, None, :]


def _largest_on_cpu(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    _, labels, stats, _ = cv2.connectedComponentsWithStats(np.ascontiguousarray(mask).view(np.uint8), connectivity=4)
    areas = stats[:, cv2.CC_STAT_AREA]
    areas[0] = 0  # the background
    largest = np.isin(labels, np.flatnonzero(areas == areas.max()))
    largest_one: npt.NDArray[np.bool_] = (labels == labels[largest][0]) & mask
    return largest_one


def _largest_on_gpu(mask: Tensor) -> Tensor:
    from colocam.boxes import blob_kernels  # noqa: PLC0415 - needs Triton

    mask = mask.contiguous()
    batch, height, width = mask.shape
    pixels, total = height * width, mask.numel()
    index = torch.arange(total, dtype=torch.int32, device=mask.device).view_as(mask)
    starts = mask & ~F.pad(mask, (1, 0))[..., :-1]
    parent = torch.where(mask, torch.where(starts, index, 0).cummax(2).values, index)
    roots = torch.empty_like(parent)
    programs = (-(-total // _BLOCK),)
    blob_kernels.unite[programs](parent, mask.view(torch.uint8), pixels, width, total, block=_BLOCK)
    blob_kernels.resolve[programs](parent, roots, total, block=_BLOCK)
    sizes = torch.zeros(total, dtype=torch.int64, device=mask.device)
    sizes.scatter_add_(0, roots.view(-1).long(), mask.view(-1).long())
    # size and position in one number: the largest region wins, of equal ones the first
    ranked = sizes.view(batch, pixels) * pixels + torch.arange(pixels - 1, -1, -1, device=mask.device)
    largest = ranked.argmax(1) + torch.arange(batch, device=mask.device) * pixels
    return mask & (roots == largest[:, None, None])
