"""Cache of the CAMs of all training frames: computed once and stored beside the classifier."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from colocam.cams import CamSource
from colocam.data.batches import BatchIndices, spread_samples
from colocam.data.frame_cache import CachedClip
from colocam.models.cam_formulas import min_max
from colocam.utils.files import read_array, write_array, write_json
from colocam.utils.progress import progress, raise_if_stopped


class CamStore:
    """CAMs of every frame of some clips, scaled to 0–1, at the resolution they were computed in.

    Args:
        cams: (N, h, w) of all frames, clip by clip.
        lengths: frames of each clip; their sum is N.
        scale: factor of the stored values.
    """

    def __init__(
        self, cams: npt.NDArray[np.float16] | npt.NDArray[np.uint8], lengths: Sequence[int], scale: float = 1.0
    ) -> None:
        self.cams = cams
        self.scale = np.float32(scale)
        self.starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])

    def read(self, indices: BatchIndices, pool: int = 0) -> Tensor:
        """(B, h, w) float32 CAMs of the frames of a batch.

        With ``pool`` k > 0, each is the element-wise maximum over the frame and its k predecessors in the clip (TCAM).
        """
        clips, frames = indices.clips.numpy(), indices.frames.numpy()
        pooled = self.cams[self.starts[clips] + frames]
        for back in range(1, pool + 1):
            pooled = np.maximum(pooled, self.cams[self.starts[clips] + np.maximum(frames - back, 0)])
        return torch.from_numpy(self.scale * pooled.astype(np.float32))


def open_cams(
    source: CamSource,
    clips: Sequence[CachedClip],
    tags: Sequence[str],
    size: int,
    path: Path,
    device: torch.device,
) -> CamStore:
    """Read the CAMs at ``path``; compute them if they are missing or belong to another source or other frames.

    Args:
        source: what computes them; its identity is stored beside them.
        clips: the frames; all of them are mapped, each for the tag of its clip.
        tags: names of the classes in the order of the logits.
        size: side in pixels that frames are resized to.
        path: the ``.npy`` file.
        device: where the maps are computed.
    """
    lengths = [len(clip) for clip in clips]
    key = {"source": source.identity, "clips": [clip.file.stem for clip in clips], "size": size}
    described = path.with_suffix(".json")
    if not _is_whole(path, described, key, sum(lengths)):
        described.unlink(missing_ok=True)
        samples = spread_samples(clips, tags, per_clip=max(lengths))
        parts = []
        with progress("class activation maps", len(samples), unit="frames") as advance:
            for frames, classes in samples.batches(size, device):
                parts.append(min_max(source.maps(frames, classes)).half().cpu().numpy())
                advance(len(frames))
                raise_if_stopped("class activation maps")
        write_array(path, np.concatenate(parts))
        write_json(described, key)
    return CamStore(np.load(path, mmap_mode="r"), lengths)


def _is_whole(path: Path, described: Path, key: dict[str, object], count: int) -> bool:
    """Whether the files hold ``count`` CAMs of this ``key``; damaged ones are computed again."""
    try:
        described_as = json.loads(described.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    cams = read_array(path)
    return described_as == key and cams is not None and cams.ndim == 3 and len(cams) == count and cams.dtype.kind == "f"
