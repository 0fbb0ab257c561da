"""Routes of what the browser shows of a film: exact frames, the proxy, the thumbnail."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Request, Response
from fastapi import Path as InPath
from starlette.responses import FileResponse, StreamingResponse

from colocam.errors import ColocamError
from colocam.serve.byte_ranges import ByteRange, RangeError, one_range
from colocam.serve.film_routes import FilmId
from colocam.serve.library import Library
from colocam.serve.refusals import NotReadyError, RefusalError

FOR_EVER = {"cache-control": "private, max-age=31536000, immutable"}
"""Ids are digests of content, so a frame never changes."""
READ_AT_ONCE = 1 << 18


def media_routes(library: Library) -> APIRouter:
    """All routes of images and films."""
    routes = APIRouter(prefix="/api")

    @routes.get("/films/{film}/stills/{frame}", response_class=Response)
    def still(film: FilmId, frame: Annotated[int, InPath(ge=0, le=1 << 32)]) -> Response:
        """The frame of an index, as JPEG, read by the reader that the model uses."""
        found = library.film(film)
        try:
            data = library.stills.get(found.id, found.path, frame)
        except ColocamError as error:
            raise RefusalError(422, library.without_paths(str(error))) from error
        if data is None:
            raise RefusalError(404, f"{found.name} has no frame {frame} that can be decoded")
        return Response(data, media_type="image/jpeg", headers=FOR_EVER)

    @routes.get("/films/{film}/thumbnail", response_class=Response)
    def thumbnail(film: FilmId) -> Response:
        """A small image of the film."""
        path = library.workspace.film(library.film(film).id, "jpg")
        if not path.is_file():
            raise NotReadyError("the film is not read yet")
        return FileResponse(path, media_type="image/jpeg")

    @routes.get("/films/{film}/proxy", response_class=Response)
    def proxy(film: FilmId, request: Request) -> Response:
        """The proxy that the browser plays, or one range of its bytes."""
        found = library.film(film)
        path = library.workspace.film(found.id, "mp4")
        if found.index is None or not path.is_file():
            raise NotReadyError("the film is not ready for playing yet")
        return _part(path, request.headers.get("range"))

    return routes


def _part(path: Path, header: str | None) -> Response:
    """A file, or one range of it."""
    size = path.stat().st_size
    try:
        asked = one_range(header, size)
    except RangeError:
        return Response(status_code=416, headers={"content-range": f"bytes */{size}"})
    part = asked or ByteRange(0, size - 1)
    headers = {"accept-ranges": "bytes", "content-length": str(part.last - part.first + 1), **FOR_EVER}
    if asked is not None:
        headers["content-range"] = f"bytes {part.first}-{part.last}/{size}"
    return StreamingResponse(_bytes(path, part), 206 if asked else 200, headers, "video/mp4")


def _bytes(path: Path, part: ByteRange) -> Iterator[bytes]:
    left = part.last - part.first + 1
    with path.open("rb") as file:
        file.seek(part.first)
        while left > 0 and (data := file.read(min(left, READ_AT_ONCE))):
            left -= len(data)
            yield data
