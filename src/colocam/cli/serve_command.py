"""``colocam serve``: the page to see, correct and export."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colocam.cli.shared_options import Device
from colocam.errors import ColocamError
from colocam.utils.extras import install_extra

if TYPE_CHECKING:
    from colocam.serve.lessons import QuickLearning


def serve(
    run: Annotated[Path, typer.Argument(help="Run folder of a trained model, or an ONNX file made from it.")],
    videos: Annotated[
        list[str] | None, typer.Argument(help="Video files, folders of images, or folders of both.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for corrections, tables and proxies. Default: <RUN>-page."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port. Default: that of the last start, or a free one.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen at; the page needs the token in the printed address.")
    ] = "127.0.0.1",
    beside: Annotated[
        list[Path] | None,
        typer.Option(metavar="RUN", help="Another model to compare with on the same videos; repeat for more."),
    ] = None,
    *,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open the page in the browser.")] = False,
    device: Device = None,
) -> None:
    """See what a model finds in videos, correct it and export it, in the browser."""
    try:
        from colocam.serve.server import serve as start
    except ModuleNotFoundError as error:
        if error.name not in {"fastapi", "starlette", "uvicorn"}:
            raise
        raise ColocamError(f"the page needs more packages: {install_extra('serve')}") from error

    folder = out or Path(f"{run.resolve().stem}-page")
    start(
        run,
        videos or [],
        folder,
        host=host,
        port=port,
        device=device,
        open_page=not no_open,
        beside=beside or [],
        quick=partial(_quick_lesson, device=device),
    )


def _quick_lesson(run: Path, device: str | None) -> "QuickLearning":
    from colocam.training.learning.card import QuickLearner

    return QuickLearner(run, device)
