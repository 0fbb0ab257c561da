"""Routes of films: the library, the frames of a film, uploads."""

import secrets
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import APIRouter, Query, Request
from fastapi import Path as InPath
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse

from colocam.serve.film_json import film_detail, film_summary
from colocam.serve.library import Library
from colocam.serve.model_list import ServedModel
from colocam.serve.refusals import RefusalError

FilmId = Annotated[str, InPath(pattern="^[0-9a-f]{24}$")]
ENDINGS = frozenset({".avi", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".ts", ".webm", ".wmv"})
"""Endings that uploaded files keep, for exports; their names are never used."""
ModelKey = Annotated[str | None, Query(pattern="^[0-9a-f]{16}$")]


def film_routes(library: Library, most_bytes: int) -> APIRouter:
    """All routes of the library; ``most_bytes`` is the limit of an upload."""
    routes = APIRouter(prefix="/api")

    @routes.get("/films")
    def list_films() -> dict[str, Any]:
        """All films, the classes that the model knows, and how many films of the command are still to be added."""
        films = [film_summary(library, film) for film in library.films()]
        return {"films": films, "tags": library.tags, "adding": library.adding}

    @routes.post("/films", status_code=201)
    async def upload(request: Request) -> dict[str, Any]:
        """Add a film: its bytes are the body, its name is the header ``X-Film-Name``, percent-encoded."""
        name = Path(unquote(request.headers.get("x-film-name", "film"))[:300]).name
        ending = Path(name).suffix.lower()
        target = library.workspace.uploads / (secrets.token_hex(16) + (ending if ending in ENDINGS else ""))
        try:
            await receive(request, target, most_bytes)
            film = await run_in_threadpool(library.add, target, Path(name).stem)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
        if film.path != target.absolute():
            target.unlink()
        return film_summary(library, film)

    @routes.delete("/films/{film}")
    def remove(film: FilmId) -> dict[str, Any]:
        """Remove a film from the library; its file and its corrections are kept."""
        library.remove(library.film(film))
        return {"removed": film}

    @routes.get("/films/{film}")
    def show(film: FilmId, model: ModelKey = None) -> JSONResponse:
        """A film, its frames and what a model, by default that in use, found in them, as columns."""
        found = library.film(film)
        library.view(found)
        chosen = model_of(library, model)
        library.look_at(found, chosen)
        return JSONResponse(film_detail(library, found, chosen))  # FastAPI would look at each number first

    return routes


def model_of(library: Library, key: str | None) -> ServedModel:
    """The model of a key, by default that in use."""
    return library.active if key is None else library.models.get(key)


async def receive(request: Request, target: Path, most: int) -> None:
    """Write the body of a request, of at most ``most`` bytes, to a new file."""
    limit = RefusalError(413, f"the file is larger than {most / 1e9:.1f} GB: name it in the command instead")
    if int(request.headers.get("content-length", "0")) > most:
        raise limit
    size = 0
    with target.open("xb") as file:
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise limit
            await run_in_threadpool(file.write, part)
    if not size:
        raise RefusalError(422, "the file is empty: choose another one")
