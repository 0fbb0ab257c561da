"""Videos as people corrected them, out of the page and into it.

Out: tables for export, and corrections for learning. In: labels of other tools, or of another page, as one edit.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from colocam.boxes import rle
from colocam.boxes.iou import best_pairs, iou
from colocam.errors import ColocamError
from colocam.labels import Correction, Kind
from colocam.labels.formats.reading import unpacked
from colocam.labels.importing import import_labels_apart, read_corrections_apart
from colocam.labels.table import TableRows, joined_rows, take_rows, write_table
from colocam.labels.table_files import file_name
from colocam.serve.guard import RefusalError
from colocam.serve.library import Library
from colocam.serve.marks import (
    BOX,
    CHECKED,
    FIRST,
    FOLLOWS,
    FOLLOWS_NONE,
    INTERPOLATED,
    NONE,
    SHOWS_BOX,
    Action,
    Change,
    Marks,
)
from colocam.serve.video_data import Video, VideoIndex, VideoResults
from colocam.types import Box, Float64Array
from colocam.utils.files import utf8

SAME_OBJECT = 0.5
"""IoU from which a further object of the model is one that people have spoken of."""
CORRECTIONS = "corrections"
"""Name of the format that holds only what people said."""
AGAIN = 0.5
"""Weight of the overlap with an object's box in the frame before, where its box in this frame is not known."""


def corrected_rows(results: VideoResults, objects: Mapping[int, Marks]) -> TableRows:
    """The localization table with what people changed; a drawn box has score and presence 1.

    Nobody has seen interpolated frames, so they keep the presence of the model. With several objects there is a row for
    each that has a box; its track is its number on the page less 1, and objects that only the model knows follow.
    """
    parts = {number: object_rows(results, marks) for number, marks in objects.items()}
    if len(parts) == 1 and not len(results.others.frame):
        return next(iter(parts.values()))
    there = {number: ~np.isnan(rows.box[:, 0]) for number, rows in parts.items()}
    offered = np.flatnonzero(others_left(results, objects))
    rest = take_rows(results.others, offered)
    known = np.unique(rest.track)
    rest = rest._replace(track=max(parts) + np.searchsorted(known, rest.track))
    nothing = ~(np.any(list(there.values()), axis=0) | np.isin(results.rows.frame, rest.frame))
    kept = [
        take_rows(
            rows._replace(track=np.where(there[number], number - 1, -1)),
            np.flatnonzero(there[number] | (nothing & objects[number].main)),
        )
        for number, rows in parts.items()
    ]
    return joined_rows([*kept, rest])


def object_rows(results: VideoResults, marks: Marks) -> TableRows:
    """A row per frame for one object, without a box where it is not; the numbers of the model are those of its own."""
    rows, source = results.rows, results.index.source
    predicted = marks.predicted(rows.box)
    drawn = np.isin(marks.state, SHOWS_BOX) | (marks.kept & _differs(marks.box, predicted))
    absent = np.isin(marks.state, (NONE, FOLLOWS_NONE)) | (marks.kept & np.isnan(marks.box[:, 0]))
    drawn &= ~absent
    size = np.array([source.width, source.height] * 2, float)
    box = np.where(drawn[:, None], np.clip(marks.box, 0, size), predicted)
    box[absent] = np.nan
    sure = np.isin(marks.state, CHECKED)
    here = np.isfinite(box[:, 0])
    foreign = ~marks.main | (here & np.isnan(rows.box[:, 0]))
    own = ~(drawn | absent | foreign)
    return rows._replace(
        tag=[new or said or old for new, said, old in zip(marks.tag, marks.accepted_tag, rows.tag, strict=True)],
        probability=np.where(marks.main, rows.probability, np.nan),
        box=box,
        score=np.where(drawn, 1.0, np.where(here, np.where(foreign, np.nan, rows.score), 0.0)),
        presence=np.where(sure, here.astype(float), rows.presence),
        margin=np.where(own, rows.margin, np.nan),
        track=np.where(here, np.maximum(rows.track, 0), rows.track),
        # A mask belongs to the box of the model: a drawn box has none.
        mask=[text if model else "" for model, text in zip(own.tolist(), rows.mask, strict=True)],
    )


def others_left(results: VideoResults, objects: Mapping[int, Marks]) -> npt.NDArray[np.bool_]:
    """(n,) which further objects of the model nobody has said anything about: those that overlap no other object."""
    others = results.others
    left, at = np.ones(len(others.frame), bool), results.other_positions
    for marks in objects.values():
        for boxes in (marks.box, marks.base):
            left &= ~(iou(others.box, boxes[at]) >= SAME_OBJECT)
    return left


def rows_at(results: VideoResults, objects: Mapping[int, Marks], rows: slice) -> tuple[VideoResults, dict[int, Marks]]:
    """Some rows of what a model found and of what people said, for :func:`corrected_rows`."""
    found = TableRows._make(column[rows] for column in results.rows)
    others = take_rows(results.others, np.flatnonzero(np.isin(results.others.frame, found.frame)))
    marks = {number: Marks._make(column[rows] for column in one) for number, one in objects.items()}
    return replace(results, rows=found, others=others), marks


def _differs(kept: Float64Array, predicted: Float64Array) -> npt.NDArray[np.bool_]:
    """(N,) whether an accepted box is another one than that of the model in use; pages round boxes."""
    same = np.isclose(kept, predicted, atol=0.01, equal_nan=True)
    return np.asarray(~np.all(same, axis=1), bool)


def filled(rows: TableRows, index: VideoIndex) -> TableRows:
    """A box without a mask gets its rectangle as mask, so that images of masks do not show background there."""
    masks = list(rows.mask)
    for row in np.flatnonzero(np.isfinite(rows.box[:, 0])).tolist():
        if not masks[row]:
            x1, y1, x2, y2 = np.rint(rows.box[row]).astype(int).tolist()
            rectangle = np.zeros((index.source.height, index.source.width), bool)
            rectangle[y1:y2, x1:x2] = True
            masks[row] = rle.encode(rectangle)
    return rows._replace(mask=masks)


def write_corrected(folder: Path, video: Video, index: VideoIndex, rows: TableRows) -> Path:
    """Write the corrected table of a video and its description into a folder, without its path on this machine."""
    table, source = folder / f"{file_name(video.name)}.csv", replace(index.source, shown_as=video.file)
    write_table(table, rows, source, ("track", "presence", "margin", "mask"))
    return table


def corrections_of(video: Video, results: VideoResults, objects: Mapping[int, Marks]) -> list[Correction]:
    """What people said about a video, one correction per frame and object; interpolated frames are no key frames.

    Frames that are asked about are none at all. Where something was said of one object, the others are listed as they
    are shown, without being key: a frame teaches where all its objects are.
    """
    parts = [(number, marks, object_rows(results, marks)) for number, marks in objects.items()]
    others = take_rows(results.others, np.flatnonzero(others_left(results, objects)))
    said = {number: _said(marks) for number, marks, _ in parts}
    found: list[Correction] = []
    for at in np.flatnonzero(np.any(list(said.values()), axis=0)).tolist():
        for number, marks, rows in parts:
            state, box, known = int(marks.state[at]), rows.box[at], bool(said[number][at])
            boxes = () if np.isnan(box[0]) else (Box(*box.tolist()),)
            if not known and not boxes and not marks.main[at]:
                continue  # it is elsewhere
            found.append(
                Correction(
                    video=video.name,
                    frame=int(rows.frame[at]),
                    pts=float(results.index.pts[at]),
                    kind=_kind(marks, at, results.rows.tag[at], boxes=bool(boxes)) if known else "accepted",
                    tag=rows.tag[at],
                    boxes=boxes,
                    key=known and state not in INTERPOLATED,
                    origin="page",
                    path=utf8(str(results.index.source.path)),
                    content=video.id,
                    track=number if len(parts) > 1 else None,
                )
            )
        for row in np.flatnonzero(others.frame == results.rows.frame[at]).tolist():
            seen = replace(found[-1], kind="accepted", tag=others.tag[row], key=False, track=None)
            found.append(replace(seen, boxes=(Box(*others.box[row].tolist()),)))
    return found


def _said(marks: Marks) -> npt.NDArray[np.bool_]:
    """(N,) whether something was said of an object, or follows; of objects that people added, a class says nothing."""
    named = marks.main & np.array([bool(tag) for tag in marks.tag])
    said: npt.NDArray[np.bool_] = np.isin(marks.state, (*CHECKED, *INTERPOLATED)) | named
    return said


def _kind(marks: Marks, at: int, predicted: str, *, boxes: bool) -> Kind:
    state = int(marks.state[at])
    if marks.tag[at] not in {"", predicted}:
        return "class" if boxes else "none"
    if state in {NONE, FOLLOWS_NONE}:
        return "none"
    return "box" if state in {BOX, FOLLOWS} else "accepted"


def imported_edit(library: Library, video: Video, file: Path, format_: str) -> tuple[Change, list[str]]:
    """Read labels of a video from a file or a ZIP archive; those of other videos of the library are left out.

    Returns:
        The edit, which undo takes back as a whole, and what was left out, and why.
    """
    if (results := video.results) is None:
        raise RefusalError(404, "the model is not done with this video yet")
    classes = library.classes
    left_out: list[str] = []
    try:
        if format_ == CORRECTIONS:
            actions = _own_corrections(video, results.index, file, classes)
        else:
            tables = _tables(library, video, results, file.parent / "tables")
            found = import_labels_apart(file, format_, tables=tables, classes=classes, meant=file_name(video.name))
            left_out = [f"{count} × {why}" for why, count in found.left_out.items()]
            own = _own_labels(video, file, found.corrections)
            actions = _Linker(library, video, results).actions(own)
    except ColocamError as error:
        raise ColocamError(str(error).replace(str(file), "the file")) from error
    except ValidationError as error:
        raise RefusalError(422, f"the file has a value that cannot be used: {error.errors()[0]['msg']}") from error
    if not actions:
        raise RefusalError(422, "; ".join(["the file changes nothing in this video", *left_out[:5]]))
    return Change(kind="edit", actions=actions), left_out


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


def _own_labels(video: Video, file: Path, found: Sequence[Correction]) -> list[Correction]:
    """What labels change in a video."""
    own = [one for one in found if one.video == file_name(video.name)]
    if found and not own:
        raise ColocamError(f"{file} holds labels of {found[0].video}, not of {video.name}: open that video")
    return [one for one in own if one.kind != "accepted"]


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

    def actions(self, corrections: Sequence[Correction]) -> list[Action]:
        """The actions that make the objects of each frame those of the corrections."""
        frames: defaultdict[int, list[Correction]] = defaultdict(list)
        for one in corrections:
            if one.frame in self.position:
                frames[one.frame].append(one)
        return [action for frame in sorted(frames) for action in self._frame(frame, frames[frame])]

    def _frame(self, frame: int, own: Sequence[Correction]) -> list[Action]:
        at, given = self.position[frame], [(box, one) for one in own for box in one.boxes]
        shown = {number: rows.box[at] for number, rows in self.rows.items()}
        here = {number for number, box in shown.items() if not np.isnan(box[0])}
        known = [*dict.fromkeys([self.main, *sorted(here), *self.last])]
        boxes = np.array([box for box, _ in given], float).reshape(-1, 4)
        values = np.array([self._values(number, shown, boxes) for number in known]).reshape(len(known), len(given))
        linked = {
            column: known[row]
            for row, column in zip(*best_pairs(values), strict=True)
            if values[row, column] > 0 or known[row] in here or known[row] == self.main
        }
        actions = []
        for column, (box, one) in enumerate(given):
            number, new = linked.get(column, self.next), column not in linked
            self.next += new
            self.last[number] = box
            actions += _actions(one, number, box)
            tag = one.tag if new else self.rows[number].tag[at] if number in self.rows else ""
            if new:
                actions.append(_class(number, one.tag, *self.frames[[0, -1]].tolist()))
            elif one.kind != "class" and tag and tag != one.tag:
                actions.append(_class(number, one.tag, frame, frame))
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
        found = read_corrections_apart(*files)
    mine = [one for one in found if _is_of(one, video)]
    if not mine:
        videos = sorted({one.video for one in found})
        if video.name in videos:
            raise ColocamError(f"{file}: its corrections of {video.name} are of another video of this name")
        listed = ", ".join(videos[:5]) or "nothing"
        raise ColocamError(f"{file}: no correction of {video.name}, only of {listed}: open that video")
    own = [one for one in mine if one.key]
    if strange := sorted({one.tag for one in own} - {"", *classes}):
        raise ColocamError(f"{file}: the class {strange[0]!r} is unknown: add it on the page, then import again")
    named = {one.track: one.tag for one in reversed(own) if one.track not in {None, FIRST} and one.tag}
    ends = index.frames[[0, -1]].tolist()
    actions = [action for one in own for action in _actions(one, one.track or FIRST)]
    return actions + [_class(number, tag, *ends) for number, tag in sorted(named.items()) if number]


def _is_of(one: Correction, video: Video) -> bool:
    if one.content:
        return one.content == video.id
    path = PurePath(one.path).parts
    same = not path or path in (PurePath(video.file).parts, video.path.parts[-len(path) :])
    return one.video == video.name and same


def _actions(one: Correction, number: int, box: Box | None = None) -> list[Action]:
    """What a correction says about an object; by default with its first box."""
    start, stop, track = one.frame, one.frame + 1, _track(number)
    box = box or next(iter(one.boxes), None)
    if one.kind == "accepted":
        shown = None if box is None else list(box)
        return [Action(kind="accepted", start=start, stop=stop, track=track, boxes=[shown], tag=one.tag or None)]
    if box is None:
        return [Action(kind="none", start=start, stop=stop, track=track)]
    actions = [Action(kind="box", start=start, stop=stop, track=track, box=list(box))]
    return [*actions, _class(number, one.tag, start, start)] if one.kind == "class" else actions


def _class(number: int, tag: str, first: int, last: int) -> Action:
    return Action(kind="class", start=first, stop=last + 1, track=_track(number), tag=tag)


def _track(number: int) -> int | None:
    """The number as actions state it."""
    return None if number == FIRST else number
