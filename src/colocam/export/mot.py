"""MOTChallenge: one folder per video; frames, tracks, classes and pixels count from 1."""

from pathlib import Path

import numpy as np

from colocam.export.frame_images import write_images
from colocam.export.labels import LabelledVideo, LabelSet, Options
from colocam.utils.files import write_text


def write(labels: LabelSet, folder: Path, options: Options) -> None:
    """Write ``<video>/gt/gt.txt``, ``gt/labels.txt``, ``det/det.txt``, ``seqinfo.ini``, with images also ``img1/``."""
    for video in labels.videos:
        sequence = folder / video.name
        write_text(sequence / "gt" / "gt.txt", _truth(labels, video))
        write_text(sequence / "gt" / "labels.txt", "".join(f"{tag}\n" for tag in labels.classes))
        write_text(sequence / "det" / "det.txt", _detections(video))
        write_text(sequence / "seqinfo.ini", _information(video))
        if options.images:
            (sequence / "img1").mkdir()
    if options.images:
        write_images(labels.videos, lambda video, frame: folder / video.name / "img1" / f"{frame + 1:06d}.jpg")


def _truth(labels: LabelSet, video: LabelledVideo) -> str:
    """Lines of frame, track, left, top, width, height, 1 (counts), class, 1 (visible)."""
    lines = []
    for row in video.objects.tolist():
        track = video.track_of(row)
        category = labels.class_index[track.tag] + 1
        lines.append(f"{video.rows.frame[row] + 1},{track.id},{_box(video, row)},1,{category},1\n")
    return "".join(lines)


def _detections(video: LabelledVideo) -> str:
    """Lines of frame, −1, left, top, width, height, score, −1, −1, −1."""
    scores = np.nan_to_num(video.rows.score, nan=1.0)
    return "".join(
        f"{video.rows.frame[row] + 1},-1,{_box(video, row)},{scores[row]:.6g},-1,-1,-1\n"
        for row in video.objects.tolist()
    )


def _box(video: LabelledVideo, row: int) -> str:
    x1, y1, x2, y2 = video.rows.box[row].tolist()
    return f"{x1 + 1:.3f},{y1 + 1:.3f},{x2 - x1:.3f},{y2 - y1:.3f}"


def _information(video: LabelledVideo) -> str:
    source = video.source
    rate = f"{float(source.fps):.6g}"
    return (
        f"[Sequence]\nname={video.name}\nimDir=img1\nframeRate={rate}\nseqLength={source.frames}\n"
        f"imWidth={source.width}\nimHeight={source.height}\nimExt=.jpg\n"
    )
