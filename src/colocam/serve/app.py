"""The application: the page, its routes, and the guard in front of them."""

import hashlib
from collections.abc import Iterable
from importlib.resources import files

from fastapi import FastAPI, Request
from starlette.responses import HTMLResponse, Response

from colocam.serve.correction_routes import correction_routes
from colocam.serve.exchange_routes import exchange_routes
from colocam.serve.film_routes import film_routes
from colocam.serve.guard import Guard, GuardSettings
from colocam.serve.layer_routes import layer_routes
from colocam.serve.lesson_routes import lesson_routes
from colocam.serve.library import Library
from colocam.serve.media_routes import FOR_EVER, media_routes
from colocam.serve.refusals import RefusalError, add_refusals
from colocam.utils.extras import __version__

KINDS = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
MOST_UPLOADED = 8 << 30


def make_app(library: Library, guard: GuardSettings, *, most_uploaded: int = MOST_UPLOADED) -> FastAPI:
    """The application of a library.

    Args:
        library: its films.
        guard: which requests are answered.
        most_uploaded: bytes of an uploaded film at most.
    """
    # The pages of FastAPI's documentation load scripts from elsewhere.
    app = FastAPI(
        title="colocam serve", version=__version__, docs_url=None, redoc_url=None, openapi_url="/api/openapi.json"
    )
    add_refusals(app)
    page = {one.name: one.read_bytes() for one in (files("colocam.serve") / "page").iterdir() if one.is_file()}
    version = hashlib.blake2b(b"".join(page[name] for name in sorted(page)), digest_size=8).hexdigest()
    html = page.pop("index.html").decode()
    for name, text in {"modules": _modules(page), "page": f"/page/{version}", "token": guard.token}.items():
        html = html.replace("{{" + name + "}}", text)

    @app.get("/", include_in_schema=False)
    async def index(_request: Request) -> HTMLResponse:
        return HTMLResponse(html)

    # A file of the page is kept by browsers; one that changed has another address.
    @app.get(f"/page/{version}/{{name}}", include_in_schema=False)
    async def part(name: str) -> Response:
        if name not in page:
            raise RefusalError(404, "there is no such file")
        return Response(page[name], media_type=KINDS[name.rpartition(".")[2]], headers=FOR_EVER)

    app.include_router(film_routes(library, most_uploaded))
    for routes in (media_routes, layer_routes, correction_routes, exchange_routes, lesson_routes):
        app.include_router(routes(library))
    app.add_middleware(Guard, settings=guard)
    return app


def _modules(names: Iterable[str]) -> str:
    """Links that let the browser fetch all scripts at once, instead of one after the other imports it."""
    scripts = sorted(name for name in names if name.endswith(".js"))
    return "\n".join(f'<link rel="modulepreload" href="{{{{page}}}}/{name}">' for name in scripts)
