"""Read a collection from a table: one row per video or clip, or one row per image of a shot."""

from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path, PurePath

from colocam.data.folders import SPLIT_NAMES
from colocam.data.image_spans import Listing
from colocam.errors import ColocamError
from colocam.types import Clip, Split
from colocam.utils.files import stored
from colocam.utils.tables import Row, number, read_rows
from colocam.video.images import natural_key


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
    listings: dict[Path, Listing] = {}
    clips: list[Clip] = []
    for row in rows:
        where = row.where
        if not row["path"] or not row["tag"]:
            raise ColocamError(f"{where}: path and tag must not be empty")
        path = table.parent / row["path"]
        if not stored(path).exists():
            raise ColocamError(f"{where}: there is no file {path}")
        start, end = number(row, "start", where), number(row, "end", where)
        if (start or 0) < 0 or (end is not None and end <= (start or 0)):
            raise ColocamError(f"{where}: a clip needs 0 ≤ start < end, got {start} and {end}")
        frames = _images(path, row.get("pictures", ""), listings, where)
        if frames and (start or end):
            raise ColocamError(f"{where}: a folder of images has no times: leave start and end empty")
        stem = str(PurePath(row["path"]).with_suffix("") if not frames else row["path"])
        seconds = f"@{start or 0:g}-{'' if end is None else f'{end:g}'}" if start or end else ""
        name = row.get("clip") or stem + seconds
        # Clips cut from one file are one video, so that they fall into one split.
        video = row.get("video") or (name if uses[row["path"]] == 1 else stem)
        clips.append(Clip(name, row["tag"], _split(row, where), path, video, start or 0.0, end, frames))
    return clips


def _images(path: Path, spans: str, listings: dict[Path, Listing], where: str) -> tuple[Path, ...]:
    """The images of a row: all of its folder, or those that its cell ``pictures`` names; none for a video file."""
    if not path.is_dir():
        if spans:
            raise ColocamError(f"{where}: {path} is not a folder: leave pictures empty")
        return ()
    if path not in listings:
        listings[path] = Listing(path)
    if not (frames := listings[path].chosen(spans, where)):
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
            raise ColocamError(f"{where}: the shot {clip.name!r} has another tag, split, video or folder above")
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
