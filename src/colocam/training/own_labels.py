"""Labels of training frames from the boxes of a trained model, for the next round or for another network.

    maps ─ boxes/, temporal/ ─► one box for each frame, chosen by the shot ─► labels

Outside the box is background. Inside, pixels above :data:`CORE` of the map's maximum are foreground and the others are
unknown. A frame in which the classifier does not see the tag has no labels (docs/method/rounds.md).
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from colocam.boxes.candidates import find_chooser
from colocam.boxes.iou import iou
from colocam.cams.cam_cache import CamStore
from colocam.config.card import Card
from colocam.data.batches import Samples, frames_per_pass, read_frames, spread_samples
from colocam.data.frame_cache import CachedClip
from colocam.maps.mapper import Mapper, map_batches, map_levels, model_mapper, window_batches
from colocam.models.model_file import Model
from colocam.temporal.look import OVERLAP, Square, square_around
from colocam.temporal.path import boxes_of_shots
from colocam.types import Float64Array, Levels
from colocam.utils.files import explain_os_errors, parse_json, read_array, write_json
from colocam.utils.progress import progress, raise_if_stopped

SIDE = 112
"""Side of the stored labels in pixels: a frame takes 12 kB."""
CORE = 0.4
"""Share of the map's maximum from which a pixel in the box is foreground."""
LEAST_PROBABILITY = 0.5
"""Probability of the tag from which a frame gets labels."""
FOREGROUND, UNKNOWN = 255, 128
"""Stored levels; background is 0."""
CLIPS = 16
"""Clips of one part."""


def own_labels(
    model: Model,
    clips: Sequence[CachedClip],
    folder: Path,
    device: torch.device,
    *,
    looks: int = 1,
) -> CamStore:
    """Labels of all frames of ``clips`` for :func:`colocam.training.seeds.sure_labels`, in 0–1; ``folder`` keeps them.

    Args:
        model: of a finished round.
        clips: of the training videos.
        folder: of that round.
        device: computes the maps.
        looks: how often each frame is looked at (docs/method/second-look.md).
    """
    lengths = [len(clip) for clip in clips]
    groups = [clips[start : start + CLIPS] for start in range(0, len(clips), CLIPS)]

    def make(at: int) -> Levels:
        return _labels(model, spread_samples(groups[at], model.card.tags, per_clip=max(lengths)), device, looks)

    counts = [sum(map(len, group)) for group in groups]
    return CamStore(kept_maps(folder, "labels", counts, make, "labels of the next round"), lengths, scale=1 / 255)


def kept_maps(folder: Path, name: str, counts: Sequence[int], make: Callable[[int], Levels], text: str) -> Levels:
    """Maps (N, SIDE, SIDE) of training frames, made in parts and kept in ``folder``: an interruption loses one part.

    The folder belongs to frames and to a network that never change.

    Args:
        folder: gets ``NAME.npy`` and ``NAME.json``.
        name: of the files.
        counts: frames of each part; their sum is N.
        make: (index of a part) → its maps.
        text: what they are, for progress.
    """
    path, described = folder / f"{name}.npy", folder / f"{name}.json"
    ends = np.cumsum([0, *counts]).tolist()
    shape = (ends[-1], SIDE, SIDE)
    done = _parts_done(path, described, shape, len(counts))
    with explain_os_errors(path):
        folder.mkdir(parents=True, exist_ok=True)
        if not done:
            # what it says is not true of the new file, even if this process is killed
            described.unlink(missing_ok=True)
            np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=shape).flush()
        stored: npt.NDArray[Any] = np.lib.format.open_memmap(path, mode="r+")
        with progress(text, len(stored), unit="frames", done=ends[done]) as advance:
            while done < len(counts):
                part = slice(ends[done], ends[done + 1])
                stored[part] = make(done)
                done += 1
                stored.flush()  # type: ignore[attr-defined]
                write_json(described, {"parts": done})
                advance(part.stop - part.start)
                raise_if_stopped(text)
    kept: Levels = np.load(path, mmap_mode="r")
    return kept


def _parts_done(path: Path, described: Path, shape: tuple[int, ...], count: int) -> int:
    """The number of parts that are stored; 0 if a file is missing or damaged."""
    stored = read_array(path)
    if stored is None or stored.shape != shape or stored.dtype != np.uint8:
        return 0
    try:
        done = parse_json(described.read_text(encoding="utf-8"))["parts"]
    except (OSError, ValueError, KeyError, TypeError):
        return 0
    return done if isinstance(done, int) and 0 <= done <= count else 0


@torch.inference_mode()
def _labels(model: Model, samples: Samples, device: torch.device, looks: int) -> Levels:
    """Labels (N, SIDE, SIDE) of some clips."""
    net, card = model.net.to(device).eval(), model.card
    mapper = model_mapper(model)
    maps = np.concatenate(list(map_batches(mapper, samples, card.size, device)))
    probabilities = [
        net.classifier.logits(frames).softmax(1).gather(1, classes[:, None])[:, 0]
        for frames, classes in samples.batches(card.size, device)
    ]
    boxes, has_box = boxes_of_shots(maps, card.threshold, card.chooser, samples.indices.clips.numpy())
    for _ in range(looks - 1):
        maps, boxes = _look_again(mapper, card, samples, maps, boxes, has_box, device)
    return box_labels(maps, boxes, has_box & (torch.cat(probabilities) >= LEAST_PROBABILITY).cpu().numpy())


def _look_again(
    mapper: Mapper,
    card: Card,
    samples: Samples,
    maps: Levels,
    boxes: Float64Array,
    has_box: npt.NDArray[np.bool_],
    device: torch.device,
) -> tuple[Levels, Float64Array]:
    """Maps (N, M, M) and boxes (N, 4) after another look at the objects of the cached frames.

    A look counts under the conditions of :mod:`colocam.inference.second_look`. Around its square, the map is 0: these
    pixels are outside the box, which is all that labels need of them.
    """
    rule, side, weighed = find_chooser(card.chooser), maps.shape[1], card.prior_decoder is not None
    looked, moved = maps.copy(), boxes.copy()
    for part, windows in window_batches(samples, frames_per_pass(device), windows=mapper.color_mean == "clip"):
        squares = {
            row: square
            for row in range(part.start, part.stop)
            if has_box[row] and (square := square_around(boxes[row], side, card.size, prior=weighed)) is not None
        }
        if not squares:
            continue
        rows = list(squares)
        frames = read_frames(samples.clips, samples.indices.part(rows)).to(device)
        cuts = [_enlarged(frame, squares[row], side, card.size) for frame, row in zip(frames, rows, strict=True)]
        of_rows = windows[[row - part.start for row in rows]]
        levels = map_levels(mapper, torch.cat(cuts), samples.classes[rows].to(device), of_rows)
        for row, level, candidates in zip(rows, levels, rule.candidates(levels, card.threshold), strict=True):
            if not len(candidates.boxes):
                continue
            box = squares[row].from_inside(candidates.boxes[:1], side)[0]
            if iou(box, boxes[row]) >= OVERLAP:
                looked[row], moved[row] = squares[row].pasted(level, np.zeros_like(level)), box
    return looked, moved


def _enlarged(frame: Tensor, square: Square, side: int, size: int) -> Tensor:
    """A square of a map of ``side`` pixels, cut out of the frame (3, R, R): (1, 3, size, size) in 0–255."""
    rows, columns = square.in_frame(frame.shape[1:], side)
    cut = frame[None, :, rows, columns].float()
    return F.interpolate(cut, size=(size, size), mode="bilinear", antialias=True)


def box_labels(maps: Levels, boxes: Float64Array, labeled: npt.NDArray[np.bool_]) -> Levels:
    """Labels (N, SIDE, SIDE) of maps (N, S, S) in 8 bits with one box each, (N, 4) in map pixels.

    Where ``labeled`` (N,) is false, all pixels are unknown.
    """
    labels = np.full((len(maps), SIDE, SIDE), UNKNOWN, np.uint8)
    for frame in np.flatnonzero(labeled):
        x1, y1, x2, y2 = boxes[frame].round().astype(int)
        inside = (slice(y1, y2 + 1), slice(x1, x2 + 1))
        full = np.zeros_like(maps[frame])
        core = maps[frame][inside] > CORE * maps[frame].max()
        full[inside] = np.where(core, FOREGROUND, UNKNOWN)
        labels[frame] = cv2.resize(full, (SIDE, SIDE), interpolation=cv2.INTER_NEAREST)
    return labels
