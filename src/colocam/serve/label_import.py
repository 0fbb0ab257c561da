"""Labels of other tools, or of another page, into the page: as one correction, which can be undone.

Tests: tests/serve/test_routes.py, tests/serve/test_objects.py.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path, PurePath

import numpy as np
from pydantic import ValidationError

from colocam.boxes.iou import best_pairs, iou
from colocam.errors import ColocamError
from colocam.labels import Correction as FrameCorrection
from colocam.labels.formats.reading import unpacked
from colocam.labels.limited_reading import import_labels_apart, read_corrections_apart
from colocam.labels.table import TableRows, joined_rows
from colocam.labels.table_files import file_name
from colocam.serve.exchange import CORRECTIONS, object_rows, write_corrected
from colocam.serve.guard import RefusalError
from colocam.serve.library import Library
from colocam.serve.marks import FIRST, Action, Correction
from colocam.serve.video_data import Video, VideoIndex, VideoResults
from colocam.types import Box

MOST_NAMES = 50
"""Names of videos that a page is asked to choose from, at most."""
AGAIN = 0.5
"""Weight of the overlap with an object's box in the frame before, where its box in this frame is not known."""


def imported_correction(
    library: Library, video: Video, file: Path, format_: str, labels_of: str | None = None
) -> tuple[Correction, list[str]]:
    """Read labels of a video from a file or a ZIP archive; those of other videos of the library are left out.

    A file that holds labels of one video is meant for this one, whatever it calls the video.

    Args:
        library: with the video.
        video: is ready.
        file: holds the labels.
        format_: of the file.
        labels_of: what the file calls the video, if a person was asked.

    Returns:
        The correction, which undo takes back as a whole, and what was left out, and why.

    Raises:
        RefusalError: 409 with the names of ``videos`` in the file, if a person must say which one is meant.
    """
    if (results := video.results) is None:
        raise RefusalError(404, "the model has not finished this video yet: wait a moment")
    classes = library.classes
    left_out: list[str] = []
    try:
        if format_ == CORRECTIONS:
            actions = _own_corrections(video, results.index, file, classes)
        else:
            tables = _tables(library, video, results, file.parent / "tables")
            read = partial(
                import_labels_apart, file, format_, tables=tables, classes=classes, meant=file_name(video.name)
            )
            imported = read(labels_of=labels_of)
            if labels_of is None and imported.strangers:
                imported = read(labels_of=_only_stranger(library, video, imported.strangers))
            left_out = [f"{count} × {why}" for why, count in imported.left_out.items()]
            corrections = _own_labels(video, file, imported.corrections)
            actions = _Linker(library, video, results).actions(corrections)
    except RefusalError:
        raise
    except ColocamError as error:
        raise ColocamError(str(error).replace(str(file), "the file")) from error
    except ValidationError as error:
        raise RefusalError(422, f"the file has a value that cannot be used: {error.errors()[0]['msg']}") from error
    if not actions:
        raise RefusalError(422, "; ".join(["the file changes nothing in this video", *left_out[:5]]))
    return Correction(kind="edit", actions=actions), left_out


def _only_stranger(library: Library, video: Video, strangers: Sequence[str]) -> str:
    """The name of the only video of a file, unless another video of the library is called so."""
    title = strangers[0]
    others = {name for other in library.videos() if other.id != video.id for name in _names(other)}
    if len(strangers) > 1:
        question = f"the file holds labels of {len(strangers)} videos, none of them called {video.name}"
    elif title.casefold() in others or PurePath(title).stem.casefold() in others:
        question = f"the file holds labels of {title}, which is another video of the library"
    else:
        return title
    raise RefusalError(409, question, videos=strangers[:MOST_NAMES])


def _names(video: Video) -> set[str]:
    names = video.name, file_name(video.name), video.file, PurePath(video.file).stem
    return {name.casefold() for name in names}


def _tables(library: Library, video: Video, results: VideoResults, folder: Path) -> list[Path]:
    """The table of a video, and tables without a box of its namesakes: labels that may mean either are refused."""
    folder.mkdir()
    tables = [write_corrected(folder, video, results.index, joined_rows([results.rows, results.others]))]
    none = TableRows._make(column[:1] for column in results.rows)._replace(box=np.full((1, 4), np.nan), mask=[""])
    for other in library.videos():
        if other.id == video.id or PurePath(other.file).stem.casefold() != PurePath(video.file).stem.casefold():
            continue
        if other.index is not None:
            rows = none._replace(frame=other.index.frames[:1])
            tables.append(write_corrected(folder, other, other.index, rows))
        elif other.state != "failed":
            raise RefusalError(404, f"{other.name} has the same file name and is not read yet: wait until it is")
    return tables


def _own_labels(video: Video, file: Path, corrections: Sequence[FrameCorrection]) -> list[FrameCorrection]:
    """What labels change in a video."""
    mine = [correction for correction in corrections if correction.video == file_name(video.name)]
    if corrections and not mine:
        raise ColocamError(f"{file} holds labels of {corrections[0].video}, not of {video.name}: open that video")
    return [correction for correction in mine if correction.kind != "accepted"]


class _Linker:
    """Gives labels without numbers to the objects of a video, frame by frame; what fits no object becomes a new one."""

    def __init__(self, library: Library, video: Video, results: VideoResults) -> None:
        self.frames = results.index.frames
        self.position = {int(frame): at for at, frame in enumerate(self.frames)}
        objects = library.objects(video, results)
        self.rows = {number: object_rows(results, marks) for number, marks in objects.items()}
        self.main = next(iter(objects))
        _, history = library.store.history(video.id)
        used = [number for action in history.actions for number in (action.number, action.into or FIRST)]
        self.next = max(used, default=FIRST) + 1
        self.last: dict[int, Box] = {}

    def actions(self, corrections: Sequence[FrameCorrection]) -> list[Action]:
        """The actions that make the objects of each frame those of the corrections."""
        frames: defaultdict[int, list[FrameCorrection]] = defaultdict(list)
        for correction in corrections:
            if correction.frame in self.position:
                frames[correction.frame].append(correction)
        return [action for frame in sorted(frames) for action in self._frame(frame, frames[frame])]

    def _frame(self, frame: int, corrections: Sequence[FrameCorrection]) -> list[Action]:
        at = self.position[frame]
        labeled = [(box, correction) for correction in corrections for box in correction.boxes]
        shown = {number: rows.box[at] for number, rows in self.rows.items()}
        here = {number for number, box in shown.items() if not np.isnan(box[0])}
        known = [*dict.fromkeys([self.main, *sorted(here), *self.last])]
        boxes = np.array([box for box, _ in labeled], float).reshape(-1, 4)
        values = np.array([self._values(number, shown, boxes) for number in known]).reshape(len(known), len(labeled))
        linked = {
            column: known[row]
            for row, column in zip(*best_pairs(values), strict=True)
            if values[row, column] > 0 or known[row] in here or known[row] == self.main
        }
        actions = []
        for column, (box, correction) in enumerate(labeled):
            number, new = linked.get(column, self.next), column not in linked
            self.next += new
            self.last[number] = box
            actions += _actions(correction, number, box)
            if new:
                actions.append(_class(number, correction.tag, *self.frames[[0, -1]].tolist()))
                continue
            tag = self.rows[number].tag[at] if number in self.rows else ""
            if correction.kind != "class" and tag and tag != correction.tag:
                actions.append(_class(number, correction.tag, frame, frame))
        return actions + [
            Action(kind="none", start=frame, stop=frame + 1, track=_track(number))
            for number in sorted(here - set(linked.values()))
        ]

    def _values(self, number: int, shown: dict[int, np.ndarray], boxes: np.ndarray) -> np.ndarray:
        """(n,) how well an object fits boxes (n, 4)."""
        now = shown.get(number)
        if now is not None and not np.isnan(now[0]):
            return iou(now, boxes)
        before = self.last.get(number)
        return np.zeros(len(boxes)) if before is None else AGAIN * iou(np.array(before), boxes)


def _own_corrections(video: Video, index: VideoIndex, file: Path, classes: Sequence[str]) -> list[Action]:
    """What people said about a video in corrections.csv; frames between marked ones follow from those.

    The content that a row states decides; without it the name, and the end of the path, if it is stated.
    """
    with unpacked(file) as place:
        files = sorted(place.rglob("*.csv")) if place.is_dir() else [place]
        if not files:
            raise ColocamError(f"{file}: no corrections.csv in the archive: export the format {CORRECTIONS!r}")
        corrections = read_corrections_apart(*files)
    mine = [correction for correction in corrections if _is_of(correction, video)]
    if not mine:
        videos = sorted({correction.video for correction in corrections})
        if video.name in videos:
            raise ColocamError(f"{file}: its corrections of {video.name} belong to a different video with this name")
        listed = ", ".join(videos[:5]) or "nothing"
        raise ColocamError(f"{file}: no correction of {video.name}, only of {listed}: open that video")
    keys = [correction for correction in mine if correction.key]
    if strange := sorted({correction.tag for correction in keys} - {"", *classes}):
        raise ColocamError(f"{file}: the class {strange[0]!r} is unknown: add it on the page, then import again")
    named = {
        correction.track: correction.tag
        for correction in reversed(keys)
        if correction.track not in {None, FIRST} and correction.tag
    }
    ends = index.frames[[0, -1]].tolist()
    actions = [action for correction in keys for action in _actions(correction, correction.track or FIRST)]
    return actions + [_class(number, tag, *ends) for number, tag in sorted(named.items()) if number]


def _is_of(correction: FrameCorrection, video: Video) -> bool:
    if correction.content:
        return correction.content == video.id
    path = PurePath(correction.path).parts
    same = not path or path in (PurePath(video.file).parts, video.path.parts[-len(path) :])
    return correction.video == video.name and same


def _actions(correction: FrameCorrection, number: int, box: Box | None = None) -> list[Action]:
    """What a correction says about an object; by default with its first box."""
    start, stop, track = correction.frame, correction.frame + 1, _track(number)
    box = box or next(iter(correction.boxes), None)
    if correction.kind == "accepted":
        shown = None if box is None else list(box)
        return [Action(kind="accepted", start=start, stop=stop, track=track, boxes=[shown], tag=correction.tag or None)]
    if box is None:
        return [Action(kind="none", start=start, stop=stop, track=track)]
    actions = [Action(kind="box", start=start, stop=stop, track=track, box=list(box))]
    return [*actions, _class(number, correction.tag, start, start)] if correction.kind == "class" else actions


def _class(number: int, tag: str, first: int, last: int) -> Action:
    return Action(kind="class", start=first, stop=last + 1, track=_track(number), tag=tag)


def _track(number: int) -> int | None:
    """The number as actions state it."""
    return None if number == FIRST else number
