"""Routes of the layers over a film: heat maps, CAMs and outlines of the objects."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from colocam.errors import ColocamError
from colocam.serve.film_results import FilmResults, outlines
from colocam.serve.film_routes import FilmId, ModelKey, model_of
from colocam.serve.library import Library
from colocam.serve.media_routes import FOR_EVER
from colocam.serve.refusals import NotReadyError, RefusalError

MAPS_AT_ONCE = 256
Start = Annotated[int, Query(ge=0, le=1 << 32)]
Count = Annotated[int, Query(ge=1, le=MAPS_AT_ONCE)]
CamCount = Annotated[int, Query(ge=1, le=32)]


def layer_routes(library: Library) -> APIRouter:
    """All routes of layers."""
    routes = APIRouter(prefix="/api")

    @routes.get("/films/{film}/maps", response_class=Response)
    def maps(film: FilmId, start: Start, count: Count = 64, model: ModelKey = None) -> Response:
        """Heat maps of ``count`` rows from ``start``: 64 × 64 bytes each."""
        results = _results(library, film, model)
        data = results.maps[start : start + count].tobytes()
        return Response(data, media_type="application/octet-stream", headers=_kept(model))

    @routes.get("/films/{film}/cams", response_class=Response)
    def cams(film: FilmId, start: Start, count: CamCount = 16, model: ModelKey = None) -> Response:
        """LayerCAM of ``count`` rows from ``start``, for the class that was found: 64 × 64 bytes each."""
        rows, found = _results(library, film, model).rows, library.film(film)
        if start >= len(rows.frame):
            raise RefusalError(404, f"{found.name} has no row {start}")
        part = slice(start, start + count)
        chosen = model_of(library, model)
        try:
            data = library.cams.get(found.id, found.path, chosen.path, rows.frame[part].tolist(), rows.tag[part])
        except ColocamError as error:
            raise RefusalError(422, library.without_paths(str(error))) from error
        return Response(data, media_type="application/octet-stream", headers=_kept(model))

    @routes.get("/films/{film}/outlines")
    def shapes(film: FilmId, start: Start, count: Count = 64, model: ModelKey = None) -> dict[str, Any]:
        """Outlines of the object in ``count`` rows from ``start``: closed polygons x1, y1, x2, y2, … in pixels."""
        results, index = _results(library, film, model), library.film(film).index
        assert index is not None
        return {"outlines": outlines(results, index.source, slice(start, start + count))}

    return routes


def _results(library: Library, film: str, model: str | None) -> FilmResults:
    results = library.film(film).found.get(model_of(library, model).key)
    if results is None:
        raise NotReadyError("the model is not done with this film yet")
    return results


def _kept(model: str | None) -> dict[str, str]:
    """What a named model found never changes; the model in use may be another one later."""
    return {"cache-control": "no-store"} if model is None else FOR_EVER
