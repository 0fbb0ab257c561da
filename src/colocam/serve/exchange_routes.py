"""Routes of labels: export in every format, corrections as CSV, import of labels that were corrected elsewhere."""

import asyncio
import re
import secrets
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse

from colocam.errors import ColocamError
from colocam.labels import Correction, Options, export, readable, writable, write_corrections
from colocam.labels.table_files import file_name
from colocam.serve.corrected import corrected_rows, corrections_of, filled, write_corrected
from colocam.serve.film_import import CORRECTIONS, imported_edit
from colocam.serve.film_results import FilmResults
from colocam.serve.film_routes import FilmId, receive
from colocam.serve.library import Film, Library
from colocam.serve.marks import Marks, marks_of
from colocam.serve.refusals import NotReadyError, RefusalError
from colocam.utils.files import atomic_path
from colocam.utils.temporary import temporary_folder

MOST_IMPORTED = 1 << 28
READ_AT_ONCE = 2
"""Files of labels; each may take a gigabyte while it is read."""
ARCHIVES = 8
"""Exports that stay on the disk for their download."""
NEED_IMAGES = frozenset({"label-studio-masks"})
"""Formats that name image files instead of films."""


class NewExport(BaseModel):
    """Which films to export, in which format, and whether with their frames; no films: all that are ready."""

    model_config = ConfigDict(strict=True, extra="forbid")

    to: Annotated[str, Field(max_length=40)]
    images: bool = False
    films: Annotated[list[Annotated[str, Field(pattern="^[0-9a-f]{24}$")]], Field(max_length=100_000)] = []


def exchange_routes(library: Library) -> APIRouter:
    """All routes of labels."""
    routes = APIRouter(prefix="/api")
    reading = asyncio.Semaphore(READ_AT_ONCE)

    @routes.get("/formats")
    def formats() -> dict[str, Any]:
        """The formats of export and import, with their titles, and which of them can hold frames as images."""
        first = {CORRECTIONS: "only what people said, for 'colocam learn'"}
        back = {CORRECTIONS: "what people said on another page"}
        return {
            "export": first | {name: one.title for name, one in writable().items()},
            "import": back | {name: one.title for name, one in readable().items()},
            "images": [name for name, one in writable().items() if one.images],
        }

    @routes.post("/exports", status_code=201)
    def make(new: NewExport) -> dict[str, Any]:
        """Write a ZIP archive and give the id for its download."""
        films = [library.film(film) for film in new.films] or library.films()
        ready = [film for film in films if film.results is not None]
        if not ready:
            raise NotReadyError("no film is ready yet: wait until the model is done with one")
        key = secrets.token_hex(16)
        with temporary_folder(library.workspace.exports) as folder, without_paths(library):
            made = _export(library, ready, new, folder)
            with (
                atomic_path(_archive(library, key)) as target,
                zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as zipped,
            ):
                for path in sorted(made.rglob("*")):
                    if path.is_file() and not path.name.startswith("."):
                        zipped.write(path, path.relative_to(made))
        for old in sorted(library.workspace.exports.glob("*.zip"), key=lambda one: one.stat().st_mtime_ns)[:-ARCHIVES]:
            old.unlink(missing_ok=True)
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
            async with reading:
                imported = await run_in_threadpool(imported_edit, library, found, file, format)
        event = await run_in_threadpool(library.store.append, found.id, client, version, imported.change)
        return {"saved": event.made, "changed": imported.frames, "left_out": imported.left_out}

    return routes


def _marks(library: Library, film: Film, results: FilmResults) -> Marks:
    assert film.index is not None
    _, history = library.store.history(film.id)
    return marks_of(history.actions, film.index.frames, film.index.cuts, results.absent)


def _export(library: Library, films: list[Film], new: NewExport, folder: Path) -> Path:
    """Write labels below ``folder``; the folder that holds them."""
    made = folder / "labels"
    if new.to == CORRECTIONS:
        found = all_corrections(library, films)
        if not found:
            raise RefusalError(422, "nobody has corrected or accepted a frame yet, so there is nothing to export")
        made.mkdir()
        files = {film.id: film.file for film in films}
        write_corrections(made / "corrections.csv", [replace(one, path=files[one.content]) for one in found])
        return made
    tables: list[Path] = []
    (folder / "tables").mkdir()
    for film in films:
        assert film.results is not None and film.index is not None  # noqa: PT018 - for the type checker
        tables.append(folder / "tables" / f"{file_name(film.name)}.csv")
        rows = corrected_rows(film.results, _marks(library, film, film.results), film.index)
        write_corrected(tables[-1], filled(rows, film.index) if new.to == "masks" else rows, film.index, film.file)
    return export(tables, new.to, made, options=Options(images=new.images or new.to in NEED_IMAGES))


def all_corrections(library: Library, films: list[Film]) -> list[Correction]:
    """What people said about films that are ready."""
    found: list[Correction] = []
    for film in films:
        # A model that was just chosen may not have seen a film yet.
        results = film.results or next(iter(film.found.values()), None)
        if results is not None and film.index is not None:
            found += corrections_of(film, results, _marks(library, film, results), film.index)
    return found


@contextmanager
def without_paths(library: Library) -> Iterator[None]:
    """Errors that reach the page say names of videos and models in place of paths of this machine."""
    try:
        yield
    except RefusalError:
        raise
    except ColocamError as error:
        raise RefusalError(422, library.without_paths(str(error))) from error


def _archive(library: Library, key: str) -> Path:
    return library.workspace.exports / f"{key}.zip"
