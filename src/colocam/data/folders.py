"""Read a collection from folders: ``VIDEOS/<tag>/<video file or folder of images>``."""

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

from colocam.errors import ColocamError
from colocam.types import SPLITS, Clip, Split
from colocam.utils.progress import say
from colocam.video.image_files import NOT_VIDEO_ENDINGS, ending_of, images_of, is_file, is_folder, visible_entries

SPLIT_NAMES: dict[str, Split] = {"training": "train", "validation": "val", "valid": "val", **{s: s for s in SPLITS}}


def read_folder(root: Path) -> tuple[list[Clip], bool]:
    """Return the clips below ``root`` and whether its folders are splits; without splits every clip is in train."""
    folders = [entry.name for entry in visible_entries(root) if is_folder(entry)]
    has_split = "train" in folders and all(name in SPLIT_NAMES for name in folders)
    tags: list[tuple[Path, str, Split]] = []
    for name in folders:
        if has_split:
            tags += [
                (root / name / e.name, f"{name}/", SPLIT_NAMES[name])
                for e in visible_entries(root / name)
                if is_folder(e)
            ]
        else:
            tags.append((root / name, "", "train"))
    if not tags:
        raise ColocamError(f"{root}: it has no folder of videos: put the videos into one folder per tag, VIDEOS/<tag>/")
    clips: list[Clip] = []
    for folder, prefix, split in tags:
        found = _read_tag(folder, split, prefix + folder.name)
        if not found:
            raise ColocamError(
                f"{folder}: no video in it: add videos (images need one folder per video), or remove the folder"
            )
        clips += found
    return clips, has_split


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
