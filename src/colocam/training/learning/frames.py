"""Corrected frames for learning: find their videos, read their frames, weigh them, and hold some videos out.

Tests: tests/training/test_learn_parts.py, tests/training/test_learn.py.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from colocam.data.batches import BatchIndices, Boxes, Samples
from colocam.data.frame_cache import (
    CachedClip,
    EntryWriter,
    cache_frames,
    clip_digest,
    clip_frames,
    entry_key,
    load_entry,
)
from colocam.errors import ColocamError
from colocam.labels.corrections import Correction
from colocam.labels.labeled_videos import LeftOut
from colocam.run import Run
from colocam.training.learning.proof import held_out_count
from colocam.types import Box, Clip, Float64Array
from colocam.utils.digests import FileDigests, text_digest
from colocam.utils.locks import temporary_folder
from colocam.video.frame_choice import evenly
from colocam.video.images import images_of
from colocam.video.input import UnreadableError

HALF_LIFE = 0.5
"""Seconds from the nearest key frame after which an interpolated or unchecked frame counts half."""
LEAST_WEIGHT = 0.05
"""Frames that count less are left out."""
MATES = (1, 2, 4, 8, 16, 24)
"""Distances, in frames, of the neighbors that are read with a corrected frame of a video that is not in the cache."""
CONTEXT = 16
"""Frames of a clip whose maps are computed together with those of its corrected frames."""


class History(NamedTuple):
    """Videos whose corrections a model has learned from, and those that were held out."""

    learned: frozenset[str] = frozenset()
    held_out: frozenset[str] = frozenset()


NO_HISTORY = History()


@dataclass(frozen=True, slots=True)
class CorrectedFrames:
    """N corrected frames.

    Attributes:
        samples: the frames, and the class of each.
        boxes: (k, 4) true boxes of each frame in pixels of the maps; k = 0 where it shows no object.
        weights: (N,) above 0, 1 for key frames.
        changed: (N,) whether the class was changed.
        held_out: (N,) whether the frame belongs to a video that is held out.
    """

    samples: Samples
    boxes: list[Boxes]
    weights: Float64Array
    changed: npt.NDArray[np.bool_]
    held_out: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.boxes)

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """(N,) whether the frame has a box."""
        return np.array([len(boxes) > 0 for boxes in self.boxes], bool)

    @property
    def key(self) -> npt.NDArray[np.bool_]:
        """(N,) whether a person set or checked the frame; others lie between such frames, and count less."""
        key: npt.NDArray[np.bool_] = self.weights >= 1
        return key

    @property
    def classes(self) -> npt.NDArray[np.int64]:
        """(N,) index of each frame's class."""
        classes: npt.NDArray[np.int64] = self.samples.classes.numpy()
        return classes

    @property
    def places(self) -> list[tuple[int, int]]:
        """Index of each frame's clip, and of the frame in it."""
        return list(zip(self.samples.indices.clips.tolist(), self.samples.indices.frames.tolist(), strict=True))

    def part(self, chosen: npt.NDArray[np.bool_]) -> "CorrectedFrames":
        """Some of the frames (N,)."""
        rows = np.flatnonzero(chosen).tolist()
        return CorrectedFrames(
            Samples(self.samples.clips, self.samples.indices.part(rows), self.samples.classes[rows]),
            [self.boxes[row] for row in rows],
            self.weights[chosen],
            self.changed[chosen],
            self.held_out[chosen],
        )

    def with_context(self) -> tuple[Samples, npt.NDArray[np.int64]]:
        """The frames with others of their clips, as post-processing needs them; and the row of each corrected frame."""
        by_clip: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for (clip, frame), tag in zip(self.places, self.classes.tolist(), strict=True):
            by_clip[clip][frame] = tag
        chosen: list[tuple[int, int, int]] = []
        for clip, of_clip in by_clip.items():
            usual = next(iter(of_clip.values()))
            frames = sorted(of_clip.keys() | set(evenly(len(self.samples.clips[clip]), CONTEXT)))
            chosen += [(clip, frame, of_clip.get(frame, usual)) for frame in frames]
        row_of = {(clip, frame): row for row, (clip, frame, _) in enumerate(chosen)}
        rows = [row_of[place] for place in self.places]
        clips, positions, classes = torch.tensor(chosen, dtype=torch.int64).reshape(-1, 3).unbind(1)
        return Samples(self.samples.clips, BatchIndices(clips, positions, clips), classes), np.array(rows, np.int64)


def corrected_frames(
    run: Run, corrections: Sequence[Correction], left_out: LeftOut, history: History = NO_HISTORY
) -> CorrectedFrames:
    """The frames of corrections that can be found: in a clip of the run, or in the file that the correction names.

    Args:
        run: the run.
        corrections: what people said.
        left_out: gets what cannot be found, and why.
        history: which videos the model has learned from before.

    Raises:
        ColocamError: no frame can be found.
    """
    tags = run.catalogue.tags
    by_clip: defaultdict[Clip, dict[int, list[Correction]]] = defaultdict(dict)
    finder = _Finder(run)
    for correction in corrections:
        if correction.tag and correction.tag not in tags:
            left_out[f"class {correction.tag!r} is unknown to the model: its corrections serve as labels only"] += 1
        elif (place := finder.find(correction)) is None:
            file = correction.path or "its path"
            left_out[f"correction of {correction.video!r}: no video of the run, and no file at {file}"] += 1
        else:
            by_clip[place].setdefault(correction.frame, []).append(correction)
    cached = _cached(run, {clip: set(frames) for clip, frames in by_clip.items()}, left_out)
    rows: list[tuple[int, int, int]] = []
    boxes = []
    weights = []
    changed = []
    side = run.config.frames.map_side
    for index, clip in enumerate(cached):
        frames = by_clip[clip.clip]
        weight_of = _weights(clip, frames)
        usual = clip.clip.tag or next(
            (correction.tag for of_frame in frames.values() for correction in of_frame if correction.tag), ""
        )
        for frame in sorted(frames):
            of_class = _of_one_class(frames[frame], usual, left_out)
            position = int(np.searchsorted(clip.index, frame))
            if position >= len(clip) or clip.index[position] != frame:
                left_out[f"correction of {of_class[0].video!r}: the video has no frame {frame}"] += 1
            elif not (tag := _class_of(of_class, usual, tagged=clip.clip in run.catalogue.clips)):
                left_out[f"correction of {of_class[0].video!r}: no correction of the video states a class"] += 1
            elif (weight := weight_of[frame]) >= LEAST_WEIGHT:
                rows.append((index, position, tags.index(tag)))
                boxes.append(
                    _scaled([box for correction in of_class for box in correction.boxes], clip, position, side)
                )
                weights.append(weight)
                changed.append(any(correction.kind == "class" for correction in of_class))
    if not rows:
        reasons = "; ".join(left_out) or "no frame was set or checked by a person"
        raise ColocamError(f"none of the corrected frames can be used: {reasons}")
    kept = held_out_videos([clip.clip.video for clip in cached], history)
    held = [cached[index].clip.video in kept for index, *_ in rows]
    clips, positions, classes = torch.tensor(rows, dtype=torch.int64).unbind(1)
    samples = Samples(cached, BatchIndices(clips, positions, clips), classes)
    return CorrectedFrames(samples, boxes, np.array(weights), np.array(changed, bool), np.array(held, bool))


def _of_one_class(of_frame: Sequence[Correction], usual: str, left_out: LeftOut) -> Sequence[Correction]:
    """What was said of a frame, without the boxes of other classes: a frame has one map, and it teaches one class."""
    stated = [correction.tag for correction in of_frame if correction.boxes]
    tag = usual if usual in stated else next(iter(stated), usual)
    kept = []
    for correction in of_frame:
        if correction.boxes and correction.tag != tag:
            boxes = f"boxes of {correction.tag!r} in a frame that teaches {tag!r}"
            left_out[f"correction of {correction.video!r}: {boxes}"] += 1
        else:
            kept.append(correction)
    return kept


def _class_of(of_frame: Sequence[Correction], usual: str, *, tagged: bool) -> str:
    """Class of a frame: the tag of its clip, if there is one and the class was not changed, else the stated class."""
    for correction in of_frame:
        if correction.tag and (correction.kind == "class" or not tagged):
            return correction.tag
    return usual


class _Finder:
    """Finds the clip of a correction: of the run by path and time, else the file that it names, else by name."""

    def __init__(self, run: Run) -> None:
        self.digests = FileDigests()
        self.by_name = {clip.name: clip for clip in run.catalogue.clips}
        self.by_path: defaultdict[str, list[Clip]] = defaultdict(list)
        for clip in run.catalogue.clips:
            self.by_path[str(clip.path.absolute())].append(clip)
        self.files: dict[str, Clip | None] = {}

    def find(self, correction: Correction) -> Clip | None:
        """The clip, None where there is none."""
        for clip in self.by_path.get(correction.path, []) if correction.path else []:
            time = correction.pts
            if time is None or ((clip.start <= 0 or clip.start <= time) and (clip.end is None or time < clip.end)):
                return clip
        named = self.by_name.get(correction.video)
        if correction.path and correction.path not in self.files:
            path = Path(correction.path)
            images = images_of(path) if path.is_dir() else ()
            entry = Clip(correction.video, correction.tag, "train", path, correction.path, frames=images)
            self.files[correction.path] = entry if path.is_file() or images else None
        file = self.files.get(correction.path)
        # another video may have the name; a copy of the run's own is known by its content
        if file is None or (named is not None and named.digest and named.digest == clip_digest(file, self.digests)):
            return named
        return file


def _cached(run: Run, wanted: dict[Clip, set[int]], left_out: LeftOut) -> list[CachedClip]:
    """The corrected clips with their frames; those whose corrected frames are not in the cache are read again."""
    sizes = run.config.frames
    of_run = set(run.catalogue.clips)
    listed = [clip for clip in wanted if clip in of_run]
    ready = cache_frames(listed, run.frames, size=sizes.resize, max_frames=sizes.per_clip) if listed else []
    complete = {clip.clip: clip for clip in ready if wanted[clip.clip] <= set(clip.index.tolist())}
    clips = []
    for clip, frames in wanted.items():
        entry = complete.get(clip) or _read_frames(clip, frames, run.frames, sizes.resize)
        if entry is None:
            left_out[f"correction of {clip.name!r}: {clip.path} cannot be read"] += len(frames)
        else:
            clips.append(entry)
    return clips


def _read_frames(clip: Clip, frames: set[int], folder: Path, size: int) -> CachedClip | None:
    """Read some frames and their neighbors into the cache; None where the file cannot be read."""
    wanted = frames | {frame + sign * away for frame in frames for away in MATES for sign in (-1, 1)}
    digest = text_digest(repr(sorted(frames)))[:16]
    key = f"{entry_key(clip, size, None)[:16]}{digest}"
    if (entry := load_entry(clip, folder, key, size)) is not None:
        return entry
    folder.mkdir(parents=True, exist_ok=True)
    with temporary_folder(folder) as scratch:
        writer = EntryWriter(folder, key, scratch, size=size, max_frames=None)
        try:
            for frame in clip_frames(clip):
                if frame.index in wanted:
                    writer.add(frame)
                elif frame.index > max(wanted):
                    break
        except UnreadableError:
            return None
        if not writer.seen:
            return None
        writer.commit()
    return load_entry(clip, folder, key, size)


def _weights(clip: CachedClip, frames: dict[int, list[Correction]]) -> dict[int, float]:
    """1 for key frames; others lose half with every :data:`HALF_LIFE` seconds from the nearest one, all without any."""
    times = dict(zip(clip.index.tolist(), clip.pts.tolist(), strict=True))
    keys = np.array([times[frame] for frame, of_frame in frames.items() if frame in times and _is_key(of_frame)])
    weights = {}
    for frame, of_frame in frames.items():
        away = np.abs(keys - times.get(frame, np.inf)).min(initial=np.inf)
        weights[frame] = 1.0 if _is_key(of_frame) else float(0.5 ** (away / HALF_LIFE))
    return weights


def _is_key(of_frame: Sequence[Correction]) -> bool:
    """Whether a person set or checked a frame: an object in it, while no other one is interpolated."""
    boxed = [correction for correction in of_frame if correction.boxes]
    if not boxed:
        return all(correction.key for correction in of_frame)
    has_key = any(correction.key for correction in boxed)
    return has_key and all(correction.key or correction.kind == "accepted" for correction in boxed)


def held_out_videos(videos: Sequence[str], history: History = NO_HISTORY) -> set[str]:
    """Some of the videos, see :func:`held_out_count`; chosen by a digest of their names, so that it is repeatable.

    Videos that were held out before stay so, and videos that were learned from before are not chosen.
    """
    names = set(videos)
    chosen = names & history.held_out
    free = names - chosen - history.learned
    order = sorted(free, key=text_digest)
    return chosen | set(order[: max(held_out_count(len(names)) - len(chosen), 0)])


def _scaled(boxes: Sequence[Box], clip: CachedClip, position: int, side: int) -> Boxes:
    width, height = clip.sizes[position]
    factor = np.array([side / width, side / height] * 2)
    scaled: Boxes = (np.array(boxes, np.float64).reshape(-1, 4) * factor).astype(np.float32)
    return scaled


def video_weights(frames: CorrectedFrames) -> Float64Array:
    """(N,) weights with which a video counts as the square root of its frames: they resemble each other."""
    clips = frames.samples.indices.clips.numpy()
    sums = np.bincount(clips, frames.weights, minlength=clips.max(initial=0) + 1)
    weights: Float64Array = frames.weights / np.sqrt(np.maximum(sums[clips], 1))
    return weights
