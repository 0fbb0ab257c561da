"""MOTChallenge: one folder per video with ``gt/gt.txt``; frames, tracks, classes and pixels count from 1.

CVAT and Datumaro write pixels that count from 0; their folders have no ``seqinfo.ini``, by which they are told apart.
"""

import configparser
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from colocam.errors import ColocamError
from colocam.labels.formats.reading import box_of, files_of, finite_number, read_label_text, size_of, whole_number
from colocam.labels.formats.writing import write_images
from colocam.labels.imported_videos import UNUSABLE, FrameLabel, ImportedVideo, tracks_of_frames
from colocam.labels.labeled_videos import LabeledVideo, LabelSet, LeftOut, Options, named
from colocam.types import Box
from colocam.utils.files import write_text

NO_CLASS = -1
"""Class of detections: the file does not say what they show."""


def write(labels: LabelSet, folder: Path, options: Options) -> None:
    """Write ``<video>/gt/gt.txt``, ``gt/labels.txt``, ``det/det.txt``, ``seqinfo.ini``, with images also ``img1/``."""
    tags = "".join(f"{tag}\n" for tag in labels.classes)
    for video in labels.videos:
        truth, detections = _lines(labels, video)
        for name, text in {
            "gt/gt.txt": truth,
            "gt/labels.txt": tags,
            "det/det.txt": detections,
            "seqinfo.ini": _information(video),
        }.items():
            write_text(folder / video.name / name, text)
    write_images(labels, options, lambda video, frame: folder / video.name / "img1" / f"{frame + 1:06d}.jpg")


def _lines(labels: LabelSet, video: LabeledVideo) -> tuple[str, str]:
    """Lines of ``gt.txt`` and of ``det.txt``.

    They are frame, track, left, top, width, height, 1 (counts), class, 1 (visible); and frame, −1, left, top, width,
    height, score, −1, −1, −1.
    """
    truth, detections = [], []
    for row in video.objects.tolist():
        frame, track = video.rows.frame[row] + 1, video.track_of(row)
        x1, y1, x2, y2 = video.rows.box[row].tolist()
        box = f"{x1 + 1:.3f},{y1 + 1:.3f},{x2 - x1:.3f},{y2 - y1:.3f}"
        truth.append(f"{frame},{track.id},{box},1,{labels.class_index[track.tag] + 1},1\n")
        detections.append(f"{frame},-1,{box},{video.numbers(row, 'score').get('score', 1.0):.6g},-1,-1,-1\n")
    return "".join(truth), "".join(detections)


def _information(video: LabeledVideo) -> str:
    source = video.source
    return (
        f"[Sequence]\nname={video.name}\nimDir=img1\nframeRate={float(source.fps):.6g}\nseqLength={source.frames}\n"
        f"imWidth={source.width}\nimHeight={source.height}\nimExt=.jpg\n"
    )


def read(path: Path, known: Sequence[LabeledVideo], left_out: LeftOut) -> list[ImportedVideo]:
    """Read a file, or the ``gt.txt`` of all videos of a folder; where there is none, their ``det.txt``."""
    files = files_of(path, ".txt")
    if path.is_dir():
        named_alike = ([file for file in files if file.name.lower() == name] for name in ("gt.txt", "det.txt"))
        files = next(filter(None, named_alike), [])
    if not files:
        raise ColocamError(f"{path}: no gt.txt: give the folder of a MOT sequence")
    return [_video(path, file, known, left_out) for file in files]


def _video(path: Path, file: Path, known: Sequence[LabeledVideo], left_out: LeftOut) -> ImportedVideo:
    folder = file.parent.parent if file.parent.name in {"gt", "det"} else file.parent
    facts = _facts(folder / "seqinfo.ini")
    name = facts.get("name") or ("" if folder == path or folder.name in {"", "gt", "det"} else folder.name)
    tags = _tags(file.parent, name, known)
    first = 1 if facts else 0
    lines = ([word.strip() for word in line.split(",")] for line in read_label_text(file).splitlines())
    labels = [_label(file, words, tags, first, left_out) for words in lines if any(words)]
    length = whole_number(file, "seqlength", facts.get("seqlength"))
    size = size_of(file, facts.get("imwidth"), facts.get("imheight"))
    return ImportedVideo((name,) if name else (), tracks_of_frames(labels), frames=length, size=size)


def _label(file: Path, words: list[str], tags: dict[int, str], first: int, left_out: LeftOut) -> FrameLabel:
    """The box of a line whose pixels count from ``first``."""
    if len(words) < 6:
        raise ColocamError(f"{file}: a line needs frame, track, x, y, width, height, got {','.join(words)[:60]!r}")
    frame = whole_number(file, "frame", words[0])
    if not frame:
        raise ColocamError(f"{file}: frames of MOT count from 1, got {words[0][:40]!r}")
    index = _class_index(file, words)
    if len(words) > 6 and finite_number(file, "the seventh number", words[6]) == 0:
        left_out["box of MOT that does not count: its seventh number is 0"] += 1
    elif index in tags:
        x1, y1, x2, y2 = box_of(file, words[2:6])
        track = finite_number(file, "track", words[1])
        number = int(track) if track > 0 and track == int(track) else None  # detections have −1
        return FrameLabel(frame - 1, tags[index], Box(x1 - first, y1 - first, x2 - first, y2 - first), number)
    elif index > 0 and tags.keys() <= {NO_CLASS}:
        raise ColocamError(f"{file}: no labels.txt beside it, so the classes have no names: add one class per line")
    else:
        left_out[f"box of class {index} of MOT: labels.txt does not name it"] += 1
    return FrameLabel(frame - 1, "", UNUSABLE)


def _class_index(file: Path, words: list[str]) -> int:
    """The class of a line, from 1; :data:`NO_CLASS` where it has none."""
    if len(words) < 8:
        return 1
    if words[7].startswith("-") and finite_number(file, "class", words[7]) == NO_CLASS:
        return NO_CLASS
    return whole_number(file, "class", words[7]) or 0


def _facts(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(read_label_text(path))
        return dict(parser["Sequence"])
    except (configparser.Error, KeyError) as error:
        raise ColocamError(f"{path}: not the description of a MOT sequence: restore it, or delete it") from error


def _tags(folder: Path, name: str, known: Sequence[LabeledVideo]) -> dict[int, str]:
    """Classes by their number; without ``labels.txt`` the only class of the tables is 1.

    A box without a class is of the class that the video called ``name`` has most often.
    """
    path = folder / "labels.txt"
    counts = Counter(tag for video in named((name,), known) or known for tag in video.rows.tag)
    listed = list({tag: None for video in known for tag in video.rows.tag})
    if path.is_file():
        listed = [line.strip() for line in read_label_text(path).splitlines() if line.strip()]
    elif len(listed) != 1:
        listed = []
    tags = dict(enumerate(listed, start=1))
    if counts:
        tags[NO_CLASS] = counts.most_common(1)[0][0]
    return tags
