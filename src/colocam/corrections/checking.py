"""Leave out labels that cannot be right for their video: unknown classes, frames beyond its end, boxes outside."""

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
        if classes is not None and track.tag not in classes:
            left_out[f"box of {video.title}: class {track.tag!r} is unknown"] += len(track.at)
            continue
        limit = np.inf if frames is None or video.rate is not None else frames
        inside = _counted(track, track.at < limit, f"box of {video.title}: its frame is beyond the end", left_out)
        tracks.append(_inside(inside, video.title, size, left_out))
    listed = video.listed
    if listed is not None and frames is not None:
        listed = listed[listed < frames]
    return replace(video, tracks=[track for track in tracks if len(track.at)], listed=listed)


def _inside(track: ImportedTrack, title: str, size: tuple[int, int] | None, left_out: LeftOut) -> ImportedTrack:
    edge = np.full(4, np.inf) if size is None else np.array(size * 2, np.float64)
    fits = ((track.boxes >= -BEYOND) & (track.boxes <= edge + BEYOND)).all(axis=1)
    track = _counted(track, fits | ~track.shown, f"box of {title}: it lies outside the frame", left_out)
    boxes = track.boxes.clip(0, edge)
    track = replace(track, boxes=boxes)
    whole = (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])
    return _counted(track, whole | ~track.shown, f"box of {title}: it has no area", left_out)


def _counted(track: ImportedTrack, kept: Flags, reason: str, left_out: LeftOut) -> ImportedTrack:
    """The key frames for which ``kept`` (k,) is true; the others are counted under ``reason``."""
    if kept.all():
        return track
    left_out[reason] += int((~kept).sum())
    return ImportedTrack(track.tag, track.at[kept], track.boxes[kept], track.shown[kept], track.follows[kept])
