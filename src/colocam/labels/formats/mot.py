"""MOTChallenge: one folder per video; frames, tracks, classes and pixels count from 1."""

import configparser
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from colocam.errors import ColocamError
from colocam.labels.formats.frame_images import write_images
from colocam.labels.imported import UNUSABLE, FrameLabel, ImportedVideo, LeftOut, tracks_of_frames
from colocam.labels.label_files import corners_of, files_of, finite_number, read_label_text, whole_number
from colocam.labels.labelled_videos import LabelledVideo, LabelSet, Options
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


NOT_TRUTH = frozenset({"labels.txt", "det.txt"})


def read(path: Path, known: Sequence[LabelledVideo], left_out: LeftOut) -> list[ImportedVideo]:
    """Read ``gt.txt``, or those of all videos of a folder."""
    files = [file for file in files_of(path, ".txt") if file.name.lower() not in NOT_TRUTH]
    if path.is_dir():
        files = [file for file in files if file.name.lower() == "gt.txt"]
    if not files:
        raise ColocamError(f"{path}: no gt.txt: give the folder of a MOT sequence")
    return [_video(path, file, known, left_out) for file in files]


def _video(path: Path, file: Path, known: Sequence[LabelledVideo], left_out: LeftOut) -> ImportedVideo:
    folder = file.parent.parent if file.parent.name == "gt" else file.parent
    facts = _facts(folder / "seqinfo.ini")
    first = 1 if facts else 0
    tags = _tags(file.parent, known)
    labels = []
    for line in read_label_text(file).splitlines():
        words = [word.strip() for word in line.split(",")]
        if not any(words):
            continue
        if len(words) < 6:
            raise ColocamError(f"{file}: a line needs frame, track, x, y, width, height, got {line[:60]!r}")
        frame = whole_number(file, "frame", words[0])
        if not frame:
            raise ColocamError(f"{file}: frames of MOT count from 1, got {words[0][:40]!r}")
        index = whole_number(file, "class", words[7]) if len(words) > 7 else 1
        named = index is not None and 0 < index <= len(tags)
        ignored = len(words) > 6 and finite_number(file, "the seventh number", words[6]) == 0
        if ignored or not named or index is None:
            unnamed = f"box of class {index} of MOT: labels.txt does not name it"
            left_out["box of MOT that does not count: its seventh number is 0" if ignored else unnamed] += 1
            labels.append(FrameLabel(frame - 1, "", UNUSABLE))
            continue
        x, y, width, height = (finite_number(file, "a side of a box", word) for word in words[2:6])
        box = corners_of(file, (x - first, y - first, x - first + width, y - first + height))
        labels.append(FrameLabel(frame - 1, tags[index - 1], box))
    name = facts.get("name") or ("" if folder == path or folder.name in {"", "gt"} else folder.name)
    length, width_, height_ = (whole_number(file, key, facts.get(key)) for key in ("seqlength", "imwidth", "imheight"))
    size = (width_, height_) if width_ and height_ else None
    return ImportedVideo((name,) if name else (), tracks_of_frames(labels), frames=length, size=size)


def _facts(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(read_label_text(path))
        return dict(parser["Sequence"])
    except (configparser.Error, KeyError) as error:
        raise ColocamError(f"{path}: not the description of a MOT sequence: restore it, or delete it") from error


def _tags(folder: Path, known: Sequence[LabelledVideo]) -> list[str]:
    """Classes in the order of their numbers; without ``labels.txt`` the only class of the tables."""
    path = folder / "labels.txt"
    if path.is_file():
        return [line.strip() for line in read_label_text(path).splitlines() if line.strip()]
    tags = sorted({tag for video in known for tag in video.rows.tag})
    if len(tags) != 1:
        raise ColocamError(f"{path} is missing, so the classes have no names: add one class per line")
    return tags
