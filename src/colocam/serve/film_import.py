"""Labels that were corrected elsewhere, as one edit of a film."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from colocam.corrections import Correction
from colocam.corrections.apart import import_labels_apart, read_corrections_apart
from colocam.corrections.unpacked import unpacked
from colocam.errors import ColocamError
from colocam.serve.actions import Action, Change
from colocam.serve.corrected import write_corrected
from colocam.serve.library import Film
from colocam.serve.refusals import NotReadyError, RefusalError

CORRECTIONS = "corrections"
"""Name of the format that holds only what people said."""


class ImportedEdit(NamedTuple):
    """An edit of a film.

    Attributes:
        change: the edit; undo takes it back as a whole.
        frames: number of frames that it changes.
        left_out: what was left out, and why.
    """

    change: Change
    frames: int
    left_out: list[str]


def imported_edit(film: Film, file: Path, format_: str, classes: Sequence[str]) -> ImportedEdit:
    """Read labels of a film from a file or a ZIP archive."""
    if film.results is None or film.index is None:
        raise NotReadyError("the model is not done with this film yet")
    (name,) = film_names([film])
    left_out: list[str] = []
    try:
        if format_ == CORRECTIONS:
            actions = _own_corrections(name, file, classes)
        else:
            table = file.parent / "table" / f"{name}.csv"
            table.parent.mkdir()
            write_corrected(table, film.results.rows, film.index)
            found = import_labels_apart(file, format_, tables=[table], classes=classes)
            left_out = [f"{count} × {why}" for why, count in found.left_out.items()]
            actions = [action for one in found.corrections if one.kind != "accepted" for action in _actions(one)]
    except ColocamError as error:
        raise RefusalError(422, str(error).replace(str(file), "the file")) from error
    except ValidationError as error:
        raise RefusalError(422, f"the file has a value that cannot be used: {error.errors()[0]['msg']}") from error
    if not actions:
        raise RefusalError(422, "; ".join(["the file changes nothing in this film", *left_out[:5]]))
    return ImportedEdit(Change(kind="edit", actions=actions), len({action.start for action in actions}), left_out)


def film_names(films: Sequence[Film]) -> list[str]:
    """A file name for each film, unique, from the name that the page shows."""
    names: list[str] = []
    for film in films:
        stem = re.sub(r"[^\w. -]", "_", Path(film.name).stem).strip(". ")[:100] or "film"
        names.append(stem if stem not in names else f"{stem}-{film.id[:8]}")
    return names


def _own_corrections(name: str, file: Path, classes: Sequence[str]) -> list[Action]:
    """What people said about a film in corrections.csv; frames between marked ones follow from those."""
    with unpacked(file) as place:
        files = sorted(place.rglob("*.csv")) if place.is_dir() else [place]
        if not files:
            raise ColocamError(f"{file}: no corrections.csv in the archive: export the format {CORRECTIONS!r}")
        found = read_corrections_apart(*files)
    videos = sorted({one.video for one in found})
    if name not in videos:
        listed = ", ".join(videos[:5]) or "nothing"
        raise ColocamError(f"{file}: no correction of {name}, only of {listed}: open that film")
    own = [one for one in found if one.video == name and one.key]
    if strange := sorted({one.tag for one in own} - {"", *classes}):
        raise ColocamError(f"{file}: the model does not know the class {strange[0]!r}")
    return [action for one in own for action in _actions(one)]


def _actions(one: Correction) -> list[Action]:
    start, stop = one.frame, one.frame + 1
    if one.kind == "accepted":
        shown = list(one.boxes[0]) if one.boxes else None
        return [Action(kind="accepted", start=start, stop=stop, boxes=[shown], tag=one.tag or None)]
    if not one.boxes:
        return [Action(kind="none", start=start, stop=stop)]
    actions = [Action(kind="box", start=start, stop=stop, box=list(one.boxes[0]))]
    return [*actions, Action(kind="class", start=start, stop=stop, tag=one.tag)] if one.kind == "class" else actions
