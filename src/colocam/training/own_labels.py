"""Labels from a decoder's own boxes, for the next round of training (docs/method/rounds.md).

    maps of the last round ─ boxes/, temporal/ ─► one box for each frame, chosen by the shot ─► labels of the next round

Outside the box is background. Inside, pixels above :data:`CORE` of the map's maximum are foreground and the others are
unknown. A frame in which the classifier does not see the tag has no labels.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import torch

from colocam.cams.cam_cache import CamStore
from colocam.data.cache_entry import CachedClip
from colocam.data.samples import Samples, spread_samples
from colocam.maps.mapper import Mapper, map_batches
from colocam.models import Classifier
from colocam.temporal.path import boxes_of_shots
from colocam.types import Float64Array, Levels
from colocam.utils.files import explain_os_errors, read_array, write_json
from colocam.utils.interrupt import raise_if_stopped, stop_requested
from colocam.utils.json_text import parse_json
from colocam.utils.progress import progress

SIDE = 112
"""Side of the stored labels in pixels: a frame takes 12 kB."""
CORE = 0.4
"""Share of the map's maximum from which a pixel in the box is foreground."""
LEAST_PROBABILITY = 0.5
"""Probability of the tag from which a frame gets labels."""
FOREGROUND, UNKNOWN = 255, 128
"""Stored levels; background is 0."""
CLIPS = 16
"""Clips of one pass."""
SECONDS_BETWEEN_SAVES = 30.0


def own_labels(
    mapper: Mapper,
    classifier: Classifier,
    threshold: float,
    clips: Sequence[CachedClip],
    tags: Sequence[str],
    size: int,
    folder: Path,
    device: torch.device,
) -> CamStore:
    """Labels of all frames of ``clips`` for :func:`colocam.training.seeds.sure_labels`, in 0–1.

    They are kept in ``folder``, ``labels.npy`` and ``labels.json``, while they are made: an interruption loses half a
    minute at most. The folder belongs to a finished round of training, which never changes.

    Args:
        mapper: the maps of that round.
        classifier: of stage 1.
        threshold: τ of the boxes.
        clips: of the training videos.
        tags: names of the classes in the order of the logits.
        size: side in pixels that frames are resized to.
        folder: of that round.
        device: of the networks.
    """
    path, described = folder / "labels.npy", folder / "labels.json"
    lengths = [len(clip) for clip in clips]
    shape = (sum(lengths), SIDE, SIDE)
    done = _clips_done(path, described, shape, len(clips))
    with explain_os_errors(path):
        if not done:
            described.unlink(
                missing_ok=True
            )  # what it says is not true of the new file, even if this process is killed
            np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=shape).flush()
        stored: npt.NDArray[Any] = np.lib.format.open_memmap(path, mode="r+")
        starts, saved_at = np.cumsum([0, *lengths]).tolist(), time.monotonic()
        with progress("labels of the next round", len(stored), unit="frames", done=starts[done]) as advance:
            while done < len(clips):
                samples = spread_samples(clips[done : done + CLIPS], tags, per_clip=max(lengths))
                stored[starts[done] : starts[done] + len(samples)] = _labels(
                    mapper, classifier, threshold, samples, size, device
                )
                done = min(done + CLIPS, len(clips))
                advance(len(samples))
                if done == len(clips) or stop_requested() or time.monotonic() - saved_at > SECONDS_BETWEEN_SAVES:
                    stored.flush()  # type: ignore[attr-defined]
                    write_json(described, {"clips": done})
                    saved_at = time.monotonic()
                    if done < len(clips):
                        raise_if_stopped("labels of the next round")
    return CamStore(np.load(path, mmap_mode="r"), lengths, scale=1 / 255)


def _clips_done(path: Path, described: Path, shape: tuple[int, ...], count: int) -> int:
    """The number of clips whose labels are stored; 0 if a file is missing or damaged."""
    stored = read_array(path)
    if stored is None or stored.shape != shape or stored.dtype != np.uint8:
        return 0
    try:
        done = parse_json(described.read_text(encoding="utf-8"))["clips"]
    except (OSError, ValueError, KeyError, TypeError):
        return 0
    return done if isinstance(done, int) and 0 <= done <= count else 0


@torch.inference_mode()
def _labels(
    mapper: Mapper, classifier: Classifier, threshold: float, samples: Samples, size: int, device: torch.device
) -> Levels:
    """Labels (N, SIDE, SIDE) of some clips."""
    maps = np.concatenate(list(map_batches(mapper, samples, size, device)))
    probabilities = [
        classifier.logits(frames).softmax(1).gather(1, classes[:, None])[:, 0]
        for frames, classes in samples.batches(size, device)
    ]
    boxes, found = boxes_of_shots(maps, threshold, mapper.chooser, samples.indices.clips.numpy())
    return box_labels(maps, boxes, found & (torch.cat(probabilities) >= LEAST_PROBABILITY).cpu().numpy())


def box_labels(maps: Levels, boxes: Float64Array, labelled: npt.NDArray[np.bool_]) -> Levels:
    """Labels (N, SIDE, SIDE) of maps (N, S, S) in 8 bits with one box each, (N, 4) in map pixels.

    Where ``labelled`` (N,) is false, all pixels are unknown.
    """
    labels = np.full((len(maps), SIDE, SIDE), UNKNOWN, np.uint8)
    for frame in np.flatnonzero(labelled):
        x1, y1, x2, y2 = boxes[frame].round().astype(int)
        inside = (slice(y1, y2 + 1), slice(x1, x2 + 1))
        full = np.zeros_like(maps[frame])
        core = maps[frame][inside] > CORE * maps[frame].max()
        full[inside] = np.where(core, FOREGROUND, UNKNOWN)
        labels[frame] = cv2.resize(full, (SIDE, SIDE), interpolation=cv2.INTER_NEAREST)
    return labels
