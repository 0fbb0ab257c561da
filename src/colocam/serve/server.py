"""The application and its server: listen, print the address, open the page.

A connection that sends no whole request is closed, so that it keeps nobody out. Uvicorn waits for ever for the headers
of a request, and its ``limit_concurrency`` refuses those who come last, whoever holds the places. Without a limit the
process runs out of open files.
"""

import asyncio
import hashlib
import ipaddress
import socket
import threading
import webbrowser
from collections.abc import Callable, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from colocam.data.run_data import read_data
from colocam.errors import ArgumentError, ColocamError
from colocam.inference.localizer import Localizer
from colocam.inference.videos import Video, find_videos, prior_digest
from colocam.segment import segmenter_files
from colocam.serve import click_routes, correction_routes, video_routes
from colocam.serve.guard import Guard, RefusalError, add_refusals
from colocam.serve.lessons import QuickLearning
from colocam.serve.library import Library
from colocam.serve.store import EventStore, open_workspace
from colocam.utils.digests import FileDigests
from colocam.utils.extras import __version__
from colocam.utils.progress import say
from colocam.video.fence import start_decoder

MOST = 200
"""Open connections. Beyond them, the one that has waited longest for a request gives its place to a new one."""
FULL = 600
"""Open connections from which on it does so even if it has just come."""
GRACE_SECONDS = 1.0
"""Until a new connection may lose its place: its request may still be on the way while all others are answered."""
BACKLOG = 128
"""Connections that are accepted before the limit is looked at; with :data:`FULL` below the 1,024 open files of most
systems."""
HEADER_SECONDS = 10.0
"""From the start of a connection, or its last answer, to the end of the next request's headers."""
KINDS = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
READ_AT_ONCE = 2
"""Files of labels; each may take a gigabyte while it is read."""
UPLOADS_AT_ONCE = 32
"""Files that are received; each holds a connection and an open file."""
DECODED_AT_ONCE = 4
"""Stills and CAMs that are computed; all requests together have 40 threads."""
PORT = 8620
"""First choice of a port; where it is taken, the system chooses another."""


class Connection(H11Protocol):
    """A connection with a limit of time for headers."""

    _since: float
    _timer: asyncio.TimerHandle

    @property
    def _waits(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Take a place, or that of another connection."""
        super().connection_made(transport)
        self._wait()
        self.loop.call_later(0, self._make_room)  # after requests that have already come were read

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._timer.cancel()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the limit of time."""
        super().connection_lost(exc)
        self._timer.cancel()

    def _wait(self) -> None:
        self._since = self.loop.time()
        self._timer = self.loop.call_later(HEADER_SECONDS, self._close)

    def _close(self) -> None:
        if self._waits:
            self.transport.abort()

    def _make_room(self) -> None:
        connections = [connection for connection in self.connections if isinstance(connection, Connection)]
        waiting = [connection for connection in connections if connection._waits]  # noqa: SLF001
        if not waiting or len(self.connections) <= MOST:
            return
        oldest = min(waiting, key=lambda connection: connection._since)  # noqa: SLF001
        young = oldest._since + GRACE_SECONDS - self.loop.time()  # noqa: SLF001
        if young > 0 and len(self.connections) <= FULL:
            self.loop.call_later(young, self._make_room)
            return
        self.connections.discard(oldest)
        oldest.transport.abort()


def web_server(app: ASGIApp) -> uvicorn.Server:
    """A server of an application. It reports its own errors alone: anybody can cause a warning."""
    how = uvicorn.Config(app, http=Connection, ws="none", log_level="error", server_header=False, backlog=BACKLOG)
    return uvicorn.Server(how)


def make_app(library: Library, hosts: frozenset[str]) -> FastAPI:
    """The application of a library.

    Args:
        library: its videos.
        hosts: values of ``Host`` that are answered, see :func:`hosts_of`.
    """
    # The pages of FastAPI's documentation load scripts from elsewhere.
    app = FastAPI(
        title="colocam serve", version=__version__, docs_url=None, redoc_url=None, openapi_url="/api/openapi.json"
    )
    add_refusals(app, library.without_paths)
    page = {file.name: file.read_bytes() for file in (files("colocam.serve") / "page").iterdir() if file.is_file()}
    version = hashlib.blake2b(b"".join(page[name] for name in sorted(page)), digest_size=8).hexdigest()
    html = page.pop("index.html").decode()
    # The browser fetches all scripts at once, instead of one after the other imports it.
    scripts = [
        f'<link rel="modulepreload" href="{{{{page}}}}/{name}">' for name in sorted(page) if name.endswith(".js")
    ]
    texts = {"modules": "\n".join(scripts), "page": f"/page/{version}", "token": library.workspace.token}
    for name, text in texts.items():
        html = html.replace("{{" + name + "}}", text)

    @app.get("/", include_in_schema=False)
    async def index(_request: Request) -> HTMLResponse:
        return HTMLResponse(html)

    # A file of the page is kept by browsers; one that changed has another address.
    @app.get(f"/page/{version}/{{name}}", include_in_schema=False)
    async def part(name: str) -> Response:
        if name not in page:
            raise RefusalError(404, "there is no such file")
        return Response(page[name], media_type=KINDS[name.rpartition(".")[2]], headers=video_routes.FOR_EVER)

    app.state.library, app.state.reading = library, asyncio.Semaphore(READ_AT_ONCE)
    app.state.uploads, app.state.decoding = asyncio.Semaphore(UPLOADS_AT_ONCE), asyncio.Semaphore(DECODED_AT_ONCE)
    app.include_router(video_routes.routes)
    app.include_router(correction_routes.routes)
    app.include_router(click_routes.routes)
    app.state.embedded = click_routes.Embedded()
    app.add_middleware(Guard, hosts=hosts, token=library.workspace.token)
    return app


def serve(
    run: Path,
    videos: Sequence[str | Path],
    out: Path,
    *,
    quick: Callable[[Path], QuickLearning],
    host: str = "127.0.0.1",
    port: int | None = None,
    device: str | None = None,
    refine: str | Path | None = None,
    looks: int | None = None,
    prior: str | Path | None = None,
    open_page: bool = True,
    beside: Sequence[Path] = (),
) -> None:
    """Serve the page until Ctrl-C.

    Args:
        run: run folder of a trained model, or an ONNX file made from it.
        videos: video files, folders of images, or folders of both; those of earlier starts are kept. Without any, the
            videos of the run that it was not trained on.
        out: folder of the server: corrections, tables, proxies and uploads.
        quick: opens the quick lesson for a run folder.
        host: address to listen at; the page needs the token in the printed address.
        port: None: that of the last start, or a free one.
        device: ``cpu`` or ``cuda``; None: the GPU, if there is one.
        refine: a segmenter, see :func:`colocam.segment.load_segmenter`, which the page can switch off; None: none.
        looks: at each frame, see :class:`colocam.config.options.Options`.
        prior: weighs all maps, see there; None: none.
        open_page: whether to open the page in the browser.
        beside: other models, to compare with that of ``run`` on the same videos.
    """
    for model in (run, *beside):
        if not model.exists():
            raise ColocamError(f"{model} does not exist: give the run folder of 'colocam train', or an ONNX file")
    segmenter = "" if refine is None else FileDigests().of_files(segmenter_files(refine))
    weighing = "" if prior is None else prior_digest(prior)
    with open_workspace(out) as workspace:
        named = find_videos(videos, workspace.root) if videos else []
        store = EventStore(workspace.database)
        load = partial(Localizer.load, device=device, masks=True, refine=refine, prior=prior)
        keys = {"segmenter": segmenter, "prior": weighing}
        library = Library(workspace, store, [run, *beside], load, quick=quick, device=device, looks=looks, **keys)
        added = [(_path(video), video.name, "") for video in named]
        if not added and not store.videos():
            added = videos_of_run(run)
        with _listen(host, port, workspace.port) as listening:
            workspace.port = listening.getsockname()[1]
            workspace.save()
            address = f"http://{_bracketed(host)}:{workspace.port}/?token={workspace.token}"
            start_decoder()  # the first frame that the page shows does not wait for one
            library.start()
            # Each video is read whole once, to know it by its content; the page need not wait for that.
            library.adding = len(added)
            threading.Thread(target=_add, args=(library, added), name="add videos", daemon=True).start()
            say(f"open {address} in a browser; Ctrl-C ends the server")
            print(address, flush=True)
            if open_page:
                webbrowser.open(address)
            try:
                web_server(make_app(library, hosts_of(host, workspace.port))).run(sockets=[listening])
            finally:
                library.stop()
                store.close()


def hosts_of(host: str, port: int) -> frozenset[str]:
    """Values of ``Host`` that a server at this address answers."""
    names = {"127.0.0.1", "localhost", "[::1]"} if is_loopback(host) else {_bracketed(host), socket.gethostname()}
    return frozenset(f"{name}:{port}".lower() for name in names)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError as error:
        raise ArgumentError("host", f"must be an IP address, got {host!r}") from error
    if address.is_unspecified:
        raise ArgumentError("host", f"must be one address of this machine, got {host}, which means all of them")
    return address.is_loopback


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def videos_of_run(run: Path) -> list[tuple[Path, str, str]]:
    """Whole videos of the splits val and test of a run folder that still exist, with their names and tags."""
    if not (run / "data.json").is_file():
        return []
    videos: dict[Path, tuple[Path, str, str]] = {}
    for clip in read_data(run).catalogue.clips:
        if clip.split != "train" and not clip.start and clip.end is None and clip.path.exists():
            videos.setdefault(clip.path, (clip.path, clip.name, clip.tag))
    return list(videos.values())


def _path(video: Video) -> Path:
    if video.source.path is None:
        raise ColocamError(
            f"{video.source.name} is not a stored video: 'colocam serve' shows files and folders of images"
        )
    return video.source.path


def _add(library: Library, videos: Sequence[tuple[Path, str, str]]) -> None:
    for path, name, tag in videos:
        try:
            library.add(path, name, tag)
        except ColocamError as error:
            say(f"warning: {error}")
        library.adding -= 1


def _listen(host: str, port: int | None, last: int) -> socket.socket:
    """A listening socket: at the asked port, or at that of the last start (0: none), or at any."""
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    choices = [port] if port is not None else [last or PORT, 0]
    for choice in choices:
        # asyncio sends without delay only where the protocol is stated; otherwise an answer may wait 40 ms for an ACK.
        listening = socket.socket(kind, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, choice))
        except OSError as error:
            listening.close()
            problem = error
            if choice == last:
                say(f"warning: port {last} of the last start is taken: a page that is still open there cannot save")
            continue
        listening.listen(BACKLOG)
        return listening
    raise ColocamError(f"cannot listen at {host}:{choices[0]}: {problem.strerror}: choose another --port")
