"""List the videos of a collection with their tags and splits, without opening any video.

A collection is a folder per tag, or a table with one row per video, clip or image.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePath

import numpy as np

from colocam.config.card import LONGEST_TAG
from colocam.errors import ArgumentError, ColocamError
from colocam.types import SPLITS, Clip, Split
from colocam.utils.files import stored
from colocam.utils.progress import say
from colocam.utils.tables import Row, read_rows
from colocam.video.images import (
    images_of,
    is_file,
    is_folder,
    may_be_video,
    natural_key,
    visible_entries,
)

SPLIT_NAMES: dict[str, Split] = {"training": "train", "validation": "val", "valid": "val", **{s: s for s in SPLITS}}


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All clips of a collection.

    Attributes:
        clips: in the natural order of their names.
        tags: the classes, sorted; the index of a class counts from 0.
    """

    clips: tuple[Clip, ...]
    tags: tuple[str, ...]

    def of(self, split: Split) -> tuple[Clip, ...]:
        """Return the clips of one split."""
        return tuple(clip for clip in self.clips if clip.split == split)


def read_catalogue(source: Path, *, val_fraction: float = 0.2, seed: int = 0) -> Catalogue:
    """Read a collection of tagged videos.

    Args:
        source: one of

            - a folder ``VIDEOS/<tag>/<video file or folder of images>``; instead of a video there may be a folder of
              its shots; ``VIDEOS/test/<tag>/…`` and ``VIDEOS/val/<tag>/…`` beside the tags are splits, the rest may be
              in ``VIDEOS/train/<tag>/…``;
            - a CSV or parquet table with path and tag, optionally split, video, clip (a name), start, end (seconds),
              and pictures (the images of a folder that belong to the clip: ``a.jpg;c.jpg..f.jpg``);
            - a table of images with frame (a path), class or tag, video, shot, optionally split.

            Paths in a table are relative to its folder.
        val_fraction: share of each tag's training videos for validation, where the source does not say which.
        seed: of the random choice of those videos.

    Raises:
        ColocamError: there is nothing to learn from, or the source contradicts itself.
    """
    if source.is_dir():
        clips, has_val = read_folder(source)
    elif not source.exists():
        raise ColocamError(f"{source}: there is no such folder or manifest")
    elif source.suffix.lower() in {".csv", ".parquet"}:
        clips, has_val = read_manifest(source)
    else:
        raise ColocamError(
            f"{source}: give a folder of tagged videos, or a manifest whose name ends in .csv or .parquet"
        )
    clips.sort(key=lambda clip: natural_key(clip.name))
    tags = tuple(sorted({clip.tag for clip in clips}))
    if len(tags) < 2:
        raise ColocamError(f"{source}: the only tag is {tags[0]!r}: training needs at least two tags")
    if len(longest := max(tags, key=len)) > LONGEST_TAG:
        raise ColocamError(f"{source}: a tag has {len(longest)} characters, at most {LONGEST_TAG}: {longest[:40]!r}…")
    _check_splits(source, clips)
    if not has_val:
        clips = _split_by_video(source, clips, val_fraction, seed)
    return Catalogue(tuple(clips), tags)


def _check_splits(source: Path, clips: Iterable[Clip]) -> None:
    splits: dict[str, Split] = {}
    for clip in clips:
        first = splits.setdefault(clip.video, clip.split)
        if first != clip.split:
            raise ColocamError(
                f"{source}: the video {clip.video!r} is in both {first} and {clip.split}: put its clips into one split"
            )


def _split_by_video(source: Path, clips: list[Clip], val_fraction: float, seed: int) -> list[Clip]:
    """Choose ``val_fraction`` of each tag's training videos for validation at random, at least one and never all."""
    if not 0 < val_fraction < 1:
        raise ArgumentError("val_fraction", f"must be between 0 and 1, got {val_fraction}")
    videos: dict[str, dict[str, None]] = defaultdict(dict)
    for clip in clips:
        if clip.split == "train":
            videos[clip.tag][clip.video] = None
    generator = np.random.default_rng(seed)
    chosen: set[str] = set()
    for tag in sorted(videos):
        names = list(videos[tag])
        if len(names) == 1:
            raise ColocamError(
                f"{source}: the tag {tag!r} has a single video ({names[0]}), which cannot be split into training and "
                "validation: add another video, or name the splits in a manifest"
            )
        count = min(max(round(val_fraction * len(names)), 1), len(names) - 1)
        chosen.update(names[index] for index in generator.permutation(len(names))[:count].tolist())
    if lost := [tag for tag in sorted(videos) if chosen.issuperset(videos[tag])]:
        raise ColocamError(
            f"{source}: all videos of {lost[0]!r} were chosen for validation, because they also have other tags: "
            "name the splits in a manifest"
        )
    return [replace(clip, split="val") if clip.video in chosen else clip for clip in clips]


def read_folder(root: Path) -> tuple[list[Clip], bool]:
    """Return the clips below ``root``, and whether some of them are there for validation.

    A folder is a tag. A folder with the name of a split is one where it holds folders of tags: of those beside it, or
    of ``train`` where there is nothing but splits. Clips that are in no split are for training.
    """
    folders = _folders(root)
    beside = [name for name in folders if name.lower() not in SPLIT_NAMES]
    splits = {name: SPLIT_NAMES[name.lower()] for name in folders if name.lower() in SPLIT_NAMES}
    tags = {name for at, split in splits.items() if split == "train" for name in _folders(root / at)}
    tags = set(beside) or tags
    places: list[tuple[Path, str, Split]] = []
    for name in folders:
        if name in splits and not (beside and _is_tag(root / name, tags)):
            _check_split(root / name, tags, splits)
            places += [(root / name / tag, f"{name}/", splits[name]) for tag in _folders(root / name)]
        else:
            splits.pop(name, None)
            places.append((root / name, "", "train"))
    if not places:
        raise ColocamError(
            f"{root}: there is no folder of videos in it: put the videos into one folder per tag, VIDEOS/<tag>/"
        )
    clips: list[Clip] = []
    for folder, prefix, split in places:
        found = _read_tag(folder, split, prefix + folder.name)
        if not found:
            raise ColocamError(
                f"{folder} contains no video: add one (images need one folder per video), or remove the folder"
            )
        clips += found
    return clips, "val" in splits.values()


def _folders(folder: Path) -> list[str]:
    return [entry.name for entry in visible_entries(folder) if is_folder(entry)]


def _is_tag(folder: Path, tags: set[str]) -> bool:
    """Whether a folder with the name of a split holds videos, and none of the tags; says so."""
    inside = _folders(folder)
    if tags.intersection(inside):
        return False
    videos = bool(_files(folder)) or any(images_of(folder / name) for name in inside)
    if videos:
        say(f"note: {folder} is read as a tag, not as a split, because it contains videos and no folder of another tag")
    return videos or not inside


def _check_split(folder: Path, tags: set[str], splits: dict[str, Split]) -> None:
    """Refuse a split that holds other folders than those of tags; name files in it that are no part of it."""
    if not tags and "train" not in splits.values():
        names = " and ".join(sorted(splits))
        raise ColocamError(
            f"{folder.parent}: {names} are splits, but there is no folder train: put the training videos into "
            "VIDEOS/train/<tag>/ or VIDEOS/<tag>/"
        )
    inside = _folders(folder)
    if not inside:
        raise ColocamError(f"{folder}: it has no folder named after a tag: put its videos into {folder.name}/<tag>/")
    if not tags:
        raise ColocamError(f"{folder.parent}: no tag has a folder in train: put the videos into VIDEOS/train/<tag>/")
    if unknown := [name for name in inside if name not in tags]:
        raise ColocamError(
            f"{folder}: it has the name of a split and holds {', '.join(unknown[:3])}, but the tags are "
            f"{' and '.join(sorted(tags)[:10])}: give its folders the names of tags; if it is a tag itself, name tag "
            "and split of each video in a table (columns path, tag, split)"
        )
    if files := _files(folder):
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        say(f"warning: skipped {folder / files[0]}{more}: {folder} is a split, whose videos are in folders of tags")


def _files(folder: Path) -> list[str]:
    """Names of the files in a folder that may be videos."""
    return [e.name for e in visible_entries(folder) if is_file(e) and may_be_video(e.path)]


def _read_tag(folder: Path, split: Split, prefix: str) -> list[Clip]:
    """Clips of one tag: a file is a video; a folder is a video as images, or holds the shots of one."""
    clips: list[Clip] = []
    for entry in visible_entries(folder):
        clip = _as_clip(entry, folder.name, split, prefix)
        if clip is not None:
            clips.append(clip)
        elif is_folder(entry):
            video = f"{prefix}/{entry.name}"
            shots = (_as_clip(shot, folder.name, split, video) for shot in visible_entries(Path(entry.path)))
            clips += [replace(shot, video=video) for shot in shots if shot is not None]
    repeated = {name for name, count in Counter(clip.name for clip in clips).items() if count > 1}
    # a.mp4 beside a.webm is probably one video twice: both keep one video name, so that they fall into one split.
    return [replace(clip, name=clip.name + clip.path.suffix) if clip.name in repeated else clip for clip in clips]


def _as_clip(entry: os.DirEntry[str], tag: str, split: Split, prefix: str) -> Clip | None:
    """The clip of a directory entry, None if the entry is not a clip."""
    path = Path(entry.path)
    if is_folder(entry):
        name = f"{prefix}/{entry.name}"
        images = images_of(path)
        return Clip(name, tag, split, path, video=name, frames=images) if images else None
    if not may_be_video(entry.path):
        return None
    if not is_file(entry):
        say(f"warning: skipped {path}: it is a broken link, a pipe or a device, not a file")
        return None
    name = f"{prefix}/{path.stem}"
    return Clip(name, tag, split, path, video=name)


class Listing:
    """The images of one folder in natural order; read once for all shots in the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.images = images_of(folder)
        self._places = {image.name: index for index, image in enumerate(self.images)}

    def chosen(self, spans: str, where: str) -> tuple[Path, ...]:
        """The images that ``spans`` names, all of them for an empty text; ``where`` begins an error."""
        if not spans:
            return self.images
        paths: dict[Path, None] = {}
        for span in (part.strip() for part in spans.split(";")):
            first, dots, last = span.partition("..")
            start, end = self._index(first, where), self._index(last if dots else first, where)
            if end < start:
                raise ColocamError(f"{where}: the span {span!r} in pictures ends before it starts")
            paths.update(dict.fromkeys(self.images[start : end + 1]))
        return tuple(paths)

    def spans(self, chosen: Sequence[Path]) -> str:
        """Text that names the images ``chosen`` (in natural order); the inverse of :meth:`chosen`."""
        indices = [self._index(image.name, str(self.folder)) for image in chosen]
        if len(indices) == len(self.images):
            return ""
        runs: list[list[int]] = []
        for index in indices:
            if runs and index == runs[-1][-1] + 1:
                runs[-1][-1] = index
            else:
                runs.append([index, index])
        ends = [(self.images[first].name, self.images[last].name) for first, last in runs]
        return ";".join(first if first == last else f"{first}..{last}" for first, last in ends)

    def _index(self, name: str, where: str) -> int:
        if name not in self._places:
            raise ColocamError(f"{where}: there is no image {name!r} in the folder {self.folder}")
        return self._places[name]


def read_manifest(table: Path) -> tuple[list[Clip], bool]:
    """Return the clips of a table and whether it names splits; without splits every clip is in train."""
    rows = read_rows(table)
    columns = rows[0].keys()
    if {"path", "tag"} <= columns:
        clips = _clips_of_paths(table, rows)
    elif {"frame", "video", "shot"} <= columns and ("tag" in columns or "class" in columns):
        clips = _clips_of_frames(table, rows)
    else:
        raise ColocamError(
            f"{table}: needs the columns path and tag, or frame, class, video and shot; "
            f"its columns are {', '.join(columns)}"
        )
    repeated = next((name for name, count in Counter(clip.name for clip in clips).items() if count > 1), None)
    if repeated is not None:
        raise ColocamError(f"{table}: two clips are called {repeated!r}: give each its own name in a column 'clip'")
    return clips, "split" in columns


def _clips_of_paths(table: Path, rows: list[Row]) -> list[Clip]:
    uses = Counter(row["path"] for row in rows)
    listing = cache(Listing)
    clips: list[Clip] = []
    for row in rows:
        where = row.where
        if not row["path"] or not row["tag"]:
            raise ColocamError(f"{where}: path and tag must not be empty")
        path = table.parent / row["path"]
        if not stored(path).exists():
            raise ColocamError(f"{where}: there is no file {path}")
        start, end = row.number("start"), row.number("end")
        if (start or 0) < 0 or (end is not None and end <= (start or 0)):
            raise ColocamError(f"{where}: a clip needs 0 ≤ start < end, got {start} and {end}")
        frames = _images(path, row.get("pictures", ""), listing, where)
        if frames and (start or end):
            raise ColocamError(f"{where}: a folder of images has no times: leave start and end empty")
        stem = str(PurePath(row["path"]).with_suffix("") if not frames else row["path"])
        until = "" if end is None else f"{end:g}"
        seconds = f"@{start or 0:g}-{until}" if start or end else ""
        name = row.get("clip") or stem + seconds
        # Clips cut from one file are one video, so that they fall into one split.
        video = row.get("video") or (name if uses[row["path"]] == 1 else stem)
        clips.append(Clip(name, row["tag"], _split(row, where), path, video, start or 0.0, end, frames))
    return clips


def _images(path: Path, spans: str, listing: Callable[[Path], Listing], where: str) -> tuple[Path, ...]:
    """The images of a row: all of its folder, or those that its cell ``pictures`` names; none for a video file."""
    if not path.is_dir():
        if spans:
            raise ColocamError(f"{where}: {path} is not a folder: leave pictures empty")
        return ()
    if not (frames := listing(path).chosen(spans, where)):
        raise ColocamError(f"{where}: there is no image in the folder {path}")
    return frames


def _clips_of_frames(table: Path, rows: list[Row]) -> list[Clip]:
    """One clip per shot; an image may be in several rows, for instance one per box."""
    tag_column = "tag" if "tag" in rows[0] else "class"
    shots: dict[str, Clip] = {}
    images: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        where = row.where
        if not (row["frame"] and row[tag_column] and row["video"] and row["shot"]):
            raise ColocamError(f"{where}: frame, {tag_column}, video and shot must not be empty")
        image = table.parent / row["frame"]
        clip = Clip(row["shot"], row[tag_column], _split(row, where), image.parent, row["video"])
        known = shots.setdefault(clip.name, clip)
        if known != clip:
            raise ColocamError(
                f"{where}: the shot {clip.name!r} has a different tag, split, video or folder in an earlier row"
            )
        if row["frame"] not in images[clip.name]:
            if not image.is_file():
                raise ColocamError(f"{where}: there is no file {image}")
            images[clip.name].add(row["frame"])
    return [
        replace(clip, frames=tuple(table.parent / frame for frame in sorted(images[name], key=natural_key)))
        for name, clip in shots.items()
    ]


def _split(row: Row, where: str) -> Split:
    if "split" not in row:
        return "train"
    name = row["split"].lower()
    split = SPLIT_NAMES.get("test" if name.startswith("test-") else name)
    if split is None:
        raise ColocamError(f"{where}: split must be train, val or test, got {row['split']!r}")
    return split
