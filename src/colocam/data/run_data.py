"""``data.json`` of a run folder: its clips and tags, where they were found, and the digests of their content.

Paths of clips are relative to ``folders``, which holds one folder twice: relative to the run folder, and absolute. So
the clips are found if the run was moved together with them, and if it was moved alone.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from colocam.data.catalogue import Catalogue
from colocam.errors import ColocamError, first_line
from colocam.types import Clip
from colocam.utils.files import parse_json

_CLIPS = TypeAdapter(tuple[Clip, ...])
_TEXTS = TypeAdapter(tuple[str, ...])


class RunData(NamedTuple):
    """What a run was trained on.

    Attributes:
        catalogue: clips and tags.
        boxes: whether true boxes were used in validation.
        frames: folder of the decoded frames.
    """

    catalogue: Catalogue
    boxes: bool
    frames: Path

    @property
    def has_digests(self) -> bool:
        """Whether the content of the clips is known; in runs of version 0.1.0 it is not."""
        return all(clip.digest is not None for clip in self.catalogue.clips)


def read_data(run: Path) -> RunData:
    """Read ``data.json`` of a run folder; paths are those where the files are now, as far as they are found."""
    path = run / "data.json"
    try:
        data = parse_json(path.read_text(encoding="utf-8"))
        stored = _TEXTS.validate_python(data.get("folders", ()))
        folders = [Path(os.path.normpath(Path(os.path.realpath(run), folder))) for folder in stored]
        clips = tuple(_located(clip, folders) for clip in _CLIPS.validate_python(data["clips"]))
        catalogue = Catalogue(clips, _TEXTS.validate_python(data["tags"]))
        if unknown := next((clip for clip in clips if clip.tag not in catalogue.tags), None):
            raise ValueError(f"{unknown.name} has the tag {unknown.tag!r}, which is not one of 'tags'")  # noqa: TRY301
        return RunData(catalogue, bool(data.get("boxes")), _frames_folder(run, data["frames"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:  # also where it is not UTF-8
        raise ColocamError(f"{path} is damaged ({first_line(error)}): restore the file, or train again") from error


def stored_data(run: Path, data: RunData) -> dict[str, Any]:
    """What ``data.json`` in the folder ``run`` holds."""
    clips = data.catalogue.clips
    parents = [clip.path.absolute().parent for clip in clips]
    root = Path(os.path.commonpath(parents or [run.absolute()]))  # a ready model comes without videos
    from_run = os.path.relpath(os.path.realpath(root), os.path.realpath(run))
    return {
        "tags": list(data.catalogue.tags),
        "boxes": data.boxes,
        "frames": str(_below(data.frames.absolute(), run.absolute())),
        "folders": [from_run, str(root)],
        "clips": _CLIPS.dump_python(tuple(_relative(clip, root) for clip in clips), mode="json"),
    }


def data_difference(before: RunData, now: RunData) -> str | None:
    """What differs between the data of two runs, None if they are the same; the places of the files do not count."""
    if before.boxes != now.boxes:
        return "boxes there, none now" if before.boxes else "no boxes there, boxes now"
    if before.catalogue.tags != now.catalogue.tags:
        return f"tags {', '.join(before.catalogue.tags)} there, {', '.join(now.catalogue.tags)} now"
    clips, others = ({clip.name: clip for clip in data.catalogue.clips} for data in (before, now))
    if clips.keys() != others.keys():
        return f"{min(clips.keys() ^ others.keys())} is only {'now' if others.keys() - clips.keys() else 'there'}"
    known = before.has_digests and now.has_digests
    differences = (_clip_difference(clip, others[name], known=known) for name, clip in clips.items())
    return next((text for text in differences if text is not None), None)


def _clip_difference(before: Clip, now: Clip, *, known: bool) -> str | None:
    """What differs between two clips of one name; ``known`` says whether both have digests."""
    if _identity(before) != _identity(now):
        return f"{now.name} has a different tag, split, video, time or number of images"
    if known and before.digest != now.digest:
        return f"the content of {now.path} has changed"
    if not known and before.path.absolute() != now.path.absolute():
        return f"{now.name} was {before.path}, and its content was not recorded"
    return None


def _identity(clip: Clip) -> tuple[object, ...]:
    return clip.tag, clip.split, clip.video, clip.start, clip.end, len(clip.frames)


def _located(clip: Clip, folders: list[Path]) -> Clip:
    """The clip in the first folder that has it, else in the last one."""
    places = [folder / clip.path for folder in folders] or [clip.path]
    path = next((place for place in places if place.exists()), places[-1])
    # absolute paths, as version 0.1.0 stored them, stay as they are
    return replace(clip, path=path, frames=tuple(path / frame for frame in clip.frames))


def _frames_folder(run: Path, stored: str) -> Path:
    folder = run / stored
    return folder if folder.is_dir() else run / "frames"


def _relative(clip: Clip, root: Path) -> Clip:
    """The clip with its path relative to ``root``, and its images relative to its path."""
    path = clip.path.absolute()
    images = tuple(_below(image.absolute(), path) for image in clip.frames)
    return replace(clip, path=_below(path, root), frames=images)


def _below(path: Path, folder: Path) -> Path:
    return path.relative_to(folder) if path.is_relative_to(folder) else path
