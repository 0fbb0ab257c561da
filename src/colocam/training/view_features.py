"""Features of several random views of frames, kept in files while they are computed."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from colocam.data.batches import BatchIndices
from colocam.data.samples import Samples
from colocam.utils.files import read_array, write_array
from colocam.utils.prefetch import Tensors, prefetch
from colocam.utils.progress import Advance, progress, raise_if_stopped

BATCH = 64
"""Frames of one pass."""

Load = Callable[[BatchIndices, int, int], Tensors]
"""(indices, view, index of the batch) → what :data:`Encode` needs; called in another thread."""
Encode = Callable[[Tensors, int], Tensor]
"""(what was loaded, view) → features (B, C)."""


def view_features(
    phase: str, samples: Samples, folder: Path, views: int, load: Load, encode: Encode, device: torch.device
) -> Tensor:
    """(V·N, C) features of all views of all frames, view by view, on the device.

    The features of each view are kept in ``folder`` until :func:`forget_views`, so an interruption loses one view.
    """
    parts = []
    with progress(f"{phase}, features", views * len(samples), unit="frames") as advance:
        for view, path in enumerate(_files(folder, views)):
            if (kept := read_array(path)) is not None and kept.ndim == 2 and len(kept) == len(samples):
                stored = np.array(kept)
                advance(len(samples))
            else:
                stored = _one_view(phase, samples, view, load, encode, device, advance).cpu().numpy()
                write_array(path, stored)
            parts.append(torch.from_numpy(stored))
    return torch.cat(parts).to(device)


def forget_views(folder: Path, views: int) -> None:
    """Delete the files of :func:`view_features`."""
    for path in _files(folder, views):
        path.unlink(missing_ok=True)


def _files(folder: Path, views: int) -> Sequence[Path]:
    return [folder / f"view-{view}.npy" for view in range(views)]


@torch.no_grad()
def _one_view(
    phase: str,
    samples: Samples,
    view: int,
    load: Load,
    encode: Encode,
    device: torch.device,
    advance: Advance,
) -> Tensor:
    """(N, C) features of one view of all frames."""
    parts = []
    batches = (samples.indices.part(slice(start, start + BATCH)) for start in range(0, len(samples), BATCH))
    loading = prefetch(enumerate(batches), lambda indices, batch: load(indices, view, batch), device)
    for _, indices, loaded in loading:
        parts.append(encode(loaded, view))
        advance(len(indices.clips))
        raise_if_stopped(phase)
    return torch.cat(parts)
