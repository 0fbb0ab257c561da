"""The commands that run a model over films: localize, label, serve."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colocam.cli.shared_options import Device, ResultOptions, with_result_options
from colocam.errors import ColocamError
from colocam.utils.extras import install_extra
from colocam.utils.progress import say

if TYPE_CHECKING:
    from colocam.serve.lessons import QuickLearning


@with_result_options
def localize(
    run: Annotated[Path, typer.Argument(help="Run folder of a trained model, or an ONNX file made from it.")],
    videos: Annotated[
        list[str],
        typer.Argument(
            help="Video files, folders of images, or folders of both; - for the standard input; rtsp://…; /dev/video0."
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the annotated videos and the localisation tables.")
    ],
    table: Annotated[str, typer.Option(help="Format of the localisation table: csv or parquet.")] = "csv",
    *,
    no_video: Annotated[bool, typer.Option("--no-video", help="Write only the localisation tables.")] = False,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Recompute existing results, and replace files that colocam did not write."),
    ] = False,
    format: Annotated[  # noqa: A002 - FFmpeg's word
        str | None, typer.Option("--format", help="FFmpeg's name of the input format, e.g. v4l2 for a camera.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            help="Processes that read films and write results; results do not change. Default: as suits the films."
        ),
    ] = None,
    options: ResultOptions,
) -> None:
    """Write an annotated mp4 and a localisation table, one row per frame, for each video."""
    from colocam.inference.localize import Writing, localize_videos

    for written in localize_videos(
        run,
        videos,
        out,
        Writing(table, not no_video, options.choice),
        overwrite=overwrite,
        format=format,
        workers=workers,
        **options.of_model,
    ):
        say(f"wrote {' and '.join(str(path) for path in written if path is not None)}")


@with_result_options
def label(
    run: Annotated[Path, typer.Argument(help="Run folder of a trained model, or an ONNX file made from it.")],
    catalogue: Annotated[
        Path, typer.Argument(help="Folder of films, or a CSV or parquet table with 'path' and optionally 'tag'.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the labels, which several commands may share.")],
    *,
    shard: Annotated[str, typer.Option(help="Label part I of N of the films, written I/N, e.g. 3/8.")] = "1/1",
    workers: Annotated[int | None, typer.Option(help="Worker processes; default: what the machine has.")] = None,
    ray: Annotated[
        str | None, typer.Option(help="Address of a Ray cluster whose actors label the films, e.g. auto.")
    ] = None,
    limit: Annotated[float, typer.Option(help="Seconds without progress after which a film is given up.")] = 300.0,
    retries: Annotated[int, typer.Option(help="Further attempts for a film whose worker died or was given up.")] = 3,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try films again that an earlier command set aside.")
    ] = False,
    options: ResultOptions,
) -> None:
    """Write a localisation table for each film of a catalogue; the same command again does what is missing."""
    from colocam.inference.label import Execution, Limits, label_videos
    from colocam.inference.videos import parse_shard

    label_videos(
        run,
        catalogue,
        out,
        Execution(parse_shard(shard), workers, ray, Limits(limit, retries), retry_failed),
        choice=options.choice,
        **options.of_model,
    )
    say(f"wrote {out / 'films.parquet'}; next: colocam export {out} --to coco -o DATA")


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
