"""Leave out labels that cannot be right for their video: unknown classes, frames beyond its end, boxes outside.

The box of a label that is left out becomes NaN, see :data:`colocam.corrections.imported.UNUSABLE`.
"""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from colocam.corrections.imported import Flags, ImportedTrack, ImportedVideo, LeftOut

BEYOND = 1.0
"""Pixels by which a box may pass the edge of the frame without being left out; it is then clipped."""


def without_faults(
    video: ImportedVideo,
    left_out: LeftOut,
    *,
    classes: Collection[str] | None,
    frames: int | None,
    size: tuple[int, int] | None,
) -> ImportedVideo:
    """The labels that are possible; the others are counted in ``left_out``.

    Args:
        video: labels in pixels.
        left_out: gets what was left out.
        classes: known classes; None: all are.
        frames: number of frames of the video; None: unknown.
        size: width and height of its frames; None: unknown.
    """
    tracks = []
    for track in video.tracks:
        if np.isnan(track.boxes).all():  # left out already
            tracks.append(track)
            continue
        if classes is not None and track.tag not in classes:
            left_out[f"box of {video.title}: class {track.tag!r} is unknown"] += len(track.at)
            tracks.append(replace(track, boxes=np.full_like(track.boxes, np.nan)))
            continue
        limit = np.inf if frames is None or video.rate is not None else frames
        inside = track.at < limit
        if not inside.all():
            left_out[f"box of {video.title}: its frame is beyond the end"] += int((~inside).sum())
        tracks.append(_usable(_part(track, inside), video.title, size, left_out))
    listed = video.listed
    if listed is not None and frames is not None:
        listed = listed[listed < frames]
    return replace(video, tracks=[track for track in tracks if len(track.at)], listed=listed)


def _usable(track: ImportedTrack, title: str, size: tuple[int, int] | None, left_out: LeftOut) -> ImportedTrack:
    """The track with boxes clipped to the frame, and NaN for those that are not in it or have no area."""
    edge = np.full(4, np.inf) if size is None else np.array(size * 2, np.float64)
    boxes = track.boxes.clip(0, edge)
    outside = ((track.boxes < -BEYOND) | (track.boxes > edge + BEYOND)).any(axis=1) & track.shown
    flat = ((boxes[:, 2] <= boxes[:, 0]) | (boxes[:, 3] <= boxes[:, 1])) & track.shown & ~outside
    for wrong, problem in ((outside, "lies outside the frame"), (flat, "has no area")):
        if wrong.any():
            left_out[f"box of {title}: it {problem}"] += int(wrong.sum())
    return replace(track, boxes=np.where((outside | flat)[:, None], np.nan, boxes))


def _part(track: ImportedTrack, kept: Flags) -> ImportedTrack:
    return ImportedTrack(track.tag, track.at[kept], track.boxes[kept], track.shown[kept], track.follows[kept])
