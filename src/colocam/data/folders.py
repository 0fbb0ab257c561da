"""Read a collection from folders: ``VIDEOS/<tag>/<video file or folder of images>``."""

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

from colocam.errors import ColocamError
from colocam.types import SPLITS, Clip, Split
from colocam.utils.progress import say
from colocam.video.images import NOT_VIDEO_ENDINGS, ending_of, images_of, is_file, is_folder, visible_entries

SPLIT_NAMES: dict[str, Split] = {"training": "train", "validation": "val", "valid": "val", **{s: s for s in SPLITS}}


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
        raise ColocamError(f"{root}: it has no folder of videos: put the videos into one folder per tag, VIDEOS/<tag>/")
    clips: list[Clip] = []
    for folder, prefix, split in places:
        found = _read_tag(folder, split, prefix + folder.name)
        if not found:
            raise ColocamError(
                f"{folder}: no video in it: add videos (images need one folder per video), or remove the folder"
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
        say(f"note: {folder} is read as a tag, not as a split: it holds videos, and no folder of another tag")
    return videos or not inside


def _check_split(folder: Path, tags: set[str], splits: dict[str, Split]) -> None:
    """Refuse a split that holds other folders than those of tags; name files in it that are no part of it."""
    if not tags and "train" not in splits.values():
        names = " and ".join(sorted(splits))
        raise ColocamError(
            f"{folder.parent}: {names} are splits, and there is no folder train: put the videos to learn from into "
            "VIDEOS/train/<tag>/ or VIDEOS/<tag>/"
        )
    inside = _folders(folder)
    if not inside:
        raise ColocamError(f"{folder}: no folder of a tag in it: put its videos into {folder.name}/<tag>/")
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
    return [e.name for e in visible_entries(folder) if is_file(e) and ending_of(e) not in NOT_VIDEO_ENDINGS]


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
    if ending_of(entry) in NOT_VIDEO_ENDINGS:
        return None
    if not is_file(entry):
        say(f"warning: skipped {path}: it is a broken link, a pipe or a device, not a file")
        return None
    name = f"{prefix}/{path.stem}"
    return Clip(name, tag, split, path, video=name)
