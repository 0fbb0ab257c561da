"""Labels that were corrected elsewhere, as one edit of a film."""

from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

import numpy as np
from pydantic import ValidationError

from colocam.errors import ColocamError
from colocam.labels import Correction, Imported
from colocam.labels.apart import import_labels_apart, read_corrections_apart
from colocam.labels.formats.reading import unpacked
from colocam.labels.table import TableRows
from colocam.labels.table_files import file_name
from colocam.serve.actions import Action, Change
from colocam.serve.corrected import write_corrected
from colocam.serve.film_index import FilmIndex
from colocam.serve.film_results import FilmResults
from colocam.serve.library import Film, Library
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


def imported_edit(library: Library, film: Film, file: Path, format_: str) -> ImportedEdit:
    """Read labels of a film from a file or a ZIP archive; those of other films of the library are left out."""
    if film.results is None or film.index is None:
        raise NotReadyError("the model is not done with this film yet")
    classes = library.tags
    left_out: list[str] = []
    try:
        if format_ == CORRECTIONS:
            actions = _own_corrections(film, file, classes)
        else:
            tables = _tables(library, film, film.results, film.index, file.parent / "tables")
            own = file_name(film.name)
            found = import_labels_apart(file, format_, tables=tables, classes=classes, meant=own)
            left_out = [f"{count} × {why}" for why, count in found.left_out.items()]
            actions = [action for one in _own_labels(film, file, found) for action in _actions(one)]
    except ColocamError as error:
        said = str(error).replace(str(file), "the file")
        raise RefusalError(422, library.without_paths(said)) from error
    except ValidationError as error:
        raise RefusalError(422, f"the file has a value that cannot be used: {error.errors()[0]['msg']}") from error
    if not actions:
        raise RefusalError(422, "; ".join(["the file changes nothing in this film", *left_out[:5]]))
    return ImportedEdit(Change(kind="edit", actions=actions), len({action.start for action in actions}), left_out)


def _tables(library: Library, film: Film, results: FilmResults, index: FilmIndex, folder: Path) -> list[Path]:
    """The table of a film, and tables without a box of its namesakes: labels that may mean either are refused."""
    folder.mkdir()
    tables = [folder / f"{file_name(film.name)}.csv"]
    write_corrected(tables[0], results.rows, index, film.file)
    none = TableRows._make(column[:1] for column in results.rows)._replace(box=np.full((1, 4), np.nan), mask=[""])
    for other in library.films():
        if other.id == film.id or PurePath(other.file).stem.casefold() != PurePath(film.file).stem.casefold():
            continue
        if other.index is not None:
            tables.append(folder / f"{file_name(other.name)}.csv")
            write_corrected(tables[-1], none._replace(frame=other.index.frames[:1]), other.index, other.file)
        elif other.state != "failed":
            raise NotReadyError(f"{other.name} has the same file name and is not read yet: wait until it is")
    return tables


def _own_labels(film: Film, file: Path, found: Imported) -> list[Correction]:
    """What labels change in a film."""
    own = [one for one in found.corrections if one.video == file_name(film.name)]
    if found.corrections and not own:
        raise ColocamError(f"{file} holds labels of {found.corrections[0].video}, not of {film.name}: open that video")
    return [one for one in own if one.kind != "accepted"]


def _own_corrections(film: Film, file: Path, classes: Sequence[str]) -> list[Action]:
    """What people said about a film in corrections.csv; frames between marked ones follow from those.

    The content that a row states decides; without it the name, and the end of the path, if it is stated.
    """
    with unpacked(file) as place:
        files = sorted(place.rglob("*.csv")) if place.is_dir() else [place]
        if not files:
            raise ColocamError(f"{file}: no corrections.csv in the archive: export the format {CORRECTIONS!r}")
        found = read_corrections_apart(*files)
    mine = [one for one in found if _is_of(one, film)]
    if not mine:
        videos = sorted({one.video for one in found})
        if film.name in videos:
            raise ColocamError(f"{file}: its corrections of {film.name} are of another video of this name")
        listed = ", ".join(videos[:5]) or "nothing"
        raise ColocamError(f"{file}: no correction of {film.name}, only of {listed}: open that video")
    own = [one for one in mine if one.key]
    if strange := sorted({one.tag for one in own} - {"", *classes}):
        raise ColocamError(f"{file}: the model does not know the class {strange[0]!r}")
    return [action for one in own for action in _actions(one)]


def _is_of(one: Correction, film: Film) -> bool:
    if one.content:
        return one.content == film.id
    path = PurePath(one.path).parts
    same = not path or path in (PurePath(film.file).parts, film.path.parts[-len(path) :])
    return one.video == film.name and same


def _actions(one: Correction) -> list[Action]:
    start, stop = one.frame, one.frame + 1
    if one.kind == "accepted":
        shown = list(one.boxes[0]) if one.boxes else None
        return [Action(kind="accepted", start=start, stop=stop, boxes=[shown], tag=one.tag or None)]
    if not one.boxes:
        return [Action(kind="none", start=start, stop=stop)]
    actions = [Action(kind="box", start=start, stop=stop, box=list(one.boxes[0]))]
    return [*actions, Action(kind="class", start=start, stop=stop, tag=one.tag)] if one.kind == "class" else actions
