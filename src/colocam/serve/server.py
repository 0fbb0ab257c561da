"""Start the server: listen, print the address, open the page."""

import ipaddress
import socket
import threading
import webbrowser
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from colocam.data.run_data import read_data
from colocam.errors import ArgumentError, ColocamError
from colocam.inference.jobs import Job, find_jobs
from colocam.inference.localizer import Localizer
from colocam.serve.app import make_app
from colocam.serve.connections import BACKLOG, web_server
from colocam.serve.event_store import EventStore
from colocam.serve.guard import GuardSettings
from colocam.serve.lessons import QuickLearning
from colocam.serve.library import Library
from colocam.serve.workspace import Workspace, open_workspace
from colocam.utils.progress import say
from colocam.video.fence import start_decoder

PORT = 8620
"""First choice of a port; where it is taken, the system chooses another."""


def serve(
    run: Path,
    videos: Sequence[str | Path],
    out: Path,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    device: str | None = None,
    open_page: bool = True,
    beside: Sequence[Path] = (),
    quick: Callable[[Path], QuickLearning] | None = None,
) -> None:
    """Serve the page until Ctrl-C.

    Args:
        run: run folder of a trained model, or an ONNX file made from it.
        videos: films, folders of images, or folders of both; films of earlier starts are kept. Without any, the
            videos of the run that it was not trained on.
        out: folder of the server: corrections, tables, proxies and uploads.
        host: address to listen at; the page needs the token in the printed address.
        port: None: that of the last start, or a free one.
        device: ``cpu`` or ``cuda``; None: the GPU, if there is one.
        open_page: whether to open the page in the browser.
        beside: other models, to compare with that of ``run`` on the same films.
        quick: opens the quick lesson for a run folder; None: there is none.
    """
    for model in (run, *beside):
        if not model.exists():
            raise ColocamError(f"{model} does not exist: give the run folder of 'colocam train', or an ONNX file")
    with open_workspace(out) as workspace:
        jobs = find_jobs(videos, workspace.root) if videos else []
        store = EventStore(workspace.database)
        load = partial(Localizer.load, device=device, masks=True)
        library = Library(workspace, store, [run, *beside], load, quick=quick, device=device)
        films = [(_path(job), job.target.relative_to(workspace.root).as_posix(), "") for job in jobs]
        if not films and not store.films():
            films = videos_of_run(run)
        with _listen(host, port, workspace) as listening:
            own = listening.getsockname()[1]
            workspace.remember(own)
            guard = guard_settings(host, own, workspace.token)
            address = f"http://{_bracketed(host)}:{own}/?token={workspace.token}"
            start_decoder()  # the first frame that the page shows does not wait for one
            library.start()
            # Each film is read whole once, to know it by its content; the page need not wait for that.
            library.adding = len(films)
            threading.Thread(target=_add, args=(library, films), name="add films", daemon=True).start()
            say(f"open {address} in a browser; Ctrl-C ends the server")
            print(address, flush=True)
            if open_page:
                webbrowser.open(address)
            try:
                web_server(make_app(library, guard)).run(sockets=[listening])
            finally:
                library.stop()
                store.close()


def guard_settings(host: str, port: int, token: str) -> GuardSettings:
    """Which requests a server at this address answers."""
    names = {"127.0.0.1", "localhost", "[::1]"} if is_loopback(host) else {_bracketed(host), socket.gethostname()}
    allowed = {f"{name}:{port}".lower() for name in names}
    return GuardSettings(frozenset(allowed), token)


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
    clips = read_data(run).catalogue.clips
    found: dict[Path, tuple[Path, str, str]] = {}
    for clip in clips:
        if clip.split != "train" and not clip.start and clip.end is None and clip.path.exists():
            found.setdefault(clip.path, (clip.path, clip.name, clip.tag))
    return list(found.values())


def _path(job: Job) -> Path:
    if job.source.path is None:
        raise ColocamError(f"{job.source.name} is no stored film: 'colocam serve' shows files and folders of images")
    return job.source.path


def _add(library: Library, films: Sequence[tuple[Path, str, str]]) -> None:
    for path, name, tag in films:
        try:
            library.add(path, name, tag)
        except ColocamError as error:
            say(f"warning: {error}")
        library.adding -= 1


def _listen(host: str, port: int | None, workspace: Workspace) -> socket.socket:
    """A listening socket: at the asked port, or at that of the last start, or at any."""
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    choices = [port] if port is not None else [workspace.port or PORT, 0]
    for choice in choices:
        # asyncio sends without delay only where the protocol is stated; otherwise an answer may wait 40 ms for an ACK.
        listening = socket.socket(kind, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, choice))
        except OSError as error:
            listening.close()
            problem = error
            continue
        listening.listen(BACKLOG)
        return listening
    raise ColocamError(f"cannot listen at {host}:{choices[0]}: {problem.strerror}: choose another --port")
