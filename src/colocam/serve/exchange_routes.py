"""Routes of labels: export in every format, corrections as CSV, import of labels that were corrected elsewhere."""

import re
import secrets
import zipfile
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse

from colocam.corrections import IMPORTS, Correction, import_labels, write_corrections
from colocam.errors import ColocamError
from colocam.export import FORMATS, export
from colocam.serve.actions import Action, Change
from colocam.serve.corrected import corrections_of, write_corrected
from colocam.serve.film_routes import FilmId, receive
from colocam.serve.library import Film, Library
from colocam.serve.marks import Marks, marks_of
from colocam.serve.refusals import NotReadyError, RefusalError
from colocam.utils.files import atomic_path
from colocam.utils.temporary import temporary_folder

CORRECTIONS = "corrections"
"""Name of the export that holds only what people said."""
MOST_IMPORTED = 1 << 28


class NewExport(BaseModel):
    """Which films to export, and in which format; no films: all that are ready."""

    model_config = ConfigDict(strict=True, extra="forbid")

    to: Annotated[str, Field(max_length=40)]
    films: Annotated[list[Annotated[str, Field(pattern="^[0-9a-f]{24}$")]], Field(max_length=100_000)] = []


def exchange_routes(library: Library) -> APIRouter:
    """All routes of labels."""
    routes = APIRouter(prefix="/api")

    @routes.get("/formats")
    def formats() -> dict[str, Any]:
        """The formats of export and import, with their titles."""
        exported = {name: one.title for name, one in FORMATS.items() if "mask" not in name and "segments" not in name}
        first = {CORRECTIONS: "corrections.csv: only what people said, for 'colocam learn'"}
        return {"export": first | exported, "import": {name: one.title for name, one in IMPORTS.items()}}

    @routes.post("/exports", status_code=201)
    def make(new: NewExport) -> dict[str, Any]:
        """Write a ZIP archive and give the id for its download."""
        films = [library.film(film) for film in new.films] or library.films()
        ready = [film for film in films if film.results is not None]
        if not ready:
            raise NotReadyError("no film is ready yet: wait until the model is done with one")
        key = secrets.token_hex(16)
        with temporary_folder(library.workspace.exports) as folder:
            made = _export(library, ready, new.to, folder)
            with (
                atomic_path(_archive(library, key)) as target,
                zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as zipped,
            ):
                for path in sorted(made.rglob("*")):
                    if path.is_file() and not path.name.startswith("."):
                        zipped.write(path, path.relative_to(made))
        return {"id": key, "name": f"{new.to}.zip", "films": len(ready), "left_out": len(films) - len(ready)}

    @routes.get("/exports/{key}/{name}", response_class=Response)
    def download(
        key: Annotated[str, InPath(pattern="^[0-9a-f]{32}$")],
        name: Annotated[str, InPath(pattern=r"^[a-z-]{1,40}\.zip$")],
    ) -> Response:
        """A ZIP archive that was made before."""
        path = _archive(library, key)
        if not path.is_file():
            raise RefusalError(404, "this export is gone: export again")
        return FileResponse(path, media_type="application/zip", filename=name)

    @routes.post("/films/{film}/labels")
    async def take(
        film: FilmId,
        request: Request,
        format: Annotated[str, Query(max_length=40)],  # noqa: A002 - the page's word
        client: Annotated[str, Query(pattern=r"^[0-9A-Za-z-]{8,64}$")],
        version: Annotated[int, Query(ge=0, le=1 << 48)],
    ) -> dict[str, Any]:
        """Import labels of this film: a file or a ZIP archive is the body. They are one edit, which can be undone."""
        found = library.film(film)
        if found.results is None or found.index is None:
            raise NotReadyError("the model is not done with this film yet")
        name = Path(request.headers.get("x-film-name", "labels")).name
        suffix = re.sub(r"[^.a-z0-9]", "", Path(name).suffix.lower())[:10]
        with temporary_folder(library.workspace.uploads) as folder:
            file = folder / f"labels{suffix}"
            await receive(request, file, MOST_IMPORTED)
            return await run_in_threadpool(_import, library, found, file, format, client, version)

    return routes


def _marks(library: Library, film: Film) -> Marks:
    assert film.index is not None
    _, history = library.store.history(film.id)
    return marks_of(history.actions, film.index.frames, film.index.cuts)


def _export(library: Library, films: list[Film], to: str, folder: Path) -> Path:
    """Write labels below ``folder``; the folder that holds them."""
    made = folder / "labels"
    if to == CORRECTIONS:
        found = all_corrections(library, films)
        if not found:
            raise RefusalError(422, "nobody has corrected or accepted a frame yet, so there is nothing to export")
        made.mkdir()
        write_corrections(made / "corrections.csv", found)
        return made
    tables: list[Path] = []
    (folder / "tables").mkdir()
    for film, name in zip(films, _names(films), strict=True):
        assert film.results is not None and film.index is not None  # noqa: PT018 - for the type checker
        tables.append(folder / "tables" / f"{name}.csv")
        write_corrected(tables[-1], film.results, _marks(library, film), film.index)
    return export(tables, to, made)


def all_corrections(library: Library, films: list[Film]) -> list[Correction]:
    """What people said about films that are ready."""
    found: list[Correction] = []
    for film, name in zip(films, _names(films), strict=True):
        # A model that was just chosen may not have seen a film yet.
        results = film.results or next(iter(film.found.values()), None)
        if results is not None and film.index is not None:
            found += corrections_of(name, results, _marks(library, film), film.index)
    return found


def _names(films: list[Film]) -> list[str]:
    """A file name for each film, unique, from the name that the page shows."""
    names: list[str] = []
    for film in films:
        stem = re.sub(r"[^\w. -]", "_", Path(film.name).stem).strip(". ")[:100] or "film"
        names.append(stem if stem not in names else f"{stem}-{film.id[:8]}")
    return names


def _import(library: Library, film: Film, file: Path, format_: str, client: str, version: int) -> dict[str, Any]:
    assert film.index is not None
    with temporary_folder(library.workspace.uploads) as folder:
        table = folder / f"{_names([film])[0]}.csv"
        assert film.results is not None
        write_corrected(table, film.results, _empty(film), film.index)
        try:
            imported = import_labels(file, format_, tables=[table], classes=library.tags)
        except ColocamError as error:
            raise RefusalError(422, str(error).replace(str(file), "the file")) from error
    actions = [action for one in imported.corrections if one.kind != "accepted" for action in _actions(one)]
    left_out = [f"{count} × {why}" for why, count in imported.left_out.items()]
    if not actions:
        raise RefusalError(422, "; ".join(["the file changes nothing in this film", *left_out[:5]]))
    event = library.store.append(film.id, client, version, Change(kind="edit", actions=actions))
    return {"saved": event.made, "changed": len({action.start for action in actions}), "left_out": left_out}


def _actions(one: Correction) -> list[Action]:
    start, stop = one.frame, one.frame + 1
    if not one.boxes:
        return [Action(kind="none", start=start, stop=stop)]
    actions = [Action(kind="box", start=start, stop=stop, box=list(one.boxes[0]))]
    return [*actions, Action(kind="class", start=start, stop=stop, tag=one.tag)] if one.kind == "class" else actions


def _empty(film: Film) -> Marks:
    assert film.index is not None
    return marks_of((), film.index.frames, film.index.cuts)


def _archive(library: Library, key: str) -> Path:
    return library.workspace.exports / f"{key}.zip"
