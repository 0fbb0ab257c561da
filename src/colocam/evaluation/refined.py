"""Labelled frames of a run, refined by a promptable segmenter: a result of its own, beside what tags alone give."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice

import numpy as np

from colocam.boxes.extract import scale_boxes
from colocam.data.frame_cache import clip_frames
from colocam.data.samples import Samples
from colocam.errors import ColocamError
from colocam.segment.refine import refine
from colocam.segment.segmenter import Segmenter
from colocam.temporal.cuts import WINDOW
from colocam.types import Clip, Float64Array, Image, Levels
from colocam.utils.progress import progress


def refined_boxes(segmenter: Segmenter, samples: Samples, maps: Levels) -> Float64Array:
    """Boxes (N, 4) of the masks of N samples in pixels of their maps, as the published rule has them; 0 without a mask.

    The samples of a clip are a few frames of one shot. Frames are read from the clip: the frame cache has smaller ones.

    Args:
        segmenter: gives the masks.
        samples: the frames, clip by clip and in order.
        maps: (N, S, S) their maps in 8 bits.
    """
    boxes, size, row = np.zeros((len(samples), 4)), maps.shape[1], 0
    with progress(f"masks of {segmenter.name}", len(samples), unit="frames") as advance:
        for _, pairs in groupby(samples.where(), key=lambda pair: pair[0].clip):
            some = list(pairs)
            images = _images(some[0][0].clip, [index for _, index in some])
            before: Float64Array | None = None
            while window := list(islice(images, WINDOW)):
                found_here = refine(segmenter, window, maps[row : row + len(window)], before)
                for image, found in zip(window, found_here, strict=True):
                    if found is not None:
                        before = found.box
                        boxes[row] = scale_boxes(found.box, image.shape[1::-1], (size, size))
                    row += 1
                advance(len(window))
    return boxes.clip(0, size - 1)


def _images(clip: Clip, indices: Sequence[int]) -> Iterator[Image]:
    """The frames of a clip with these indices, ascending, at their own size."""
    if clip.frames:
        frames = clip_frames(replace(clip, frames=tuple(clip.frames[index] for index in indices)))
        images = [frame.image for frame in frames]
    else:
        wanted = set(indices)
        images = [frame.image for frame in clip_frames(clip) if frame.index in wanted]
    if len(images) != len(indices):
        raise ColocamError(f"{clip.path}: {len(indices) - len(images)} frames of {clip.name} cannot be read any more")
    return iter(images)
