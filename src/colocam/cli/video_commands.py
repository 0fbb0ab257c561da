"""The commands that run a model over videos: localize, label, serve.

Tests: tests/cli/test_cli.py, tests/inference/test_localize.py, tests/inference/test_label.py.
"""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from typer import Argument, Option

from colocam.cli import completion
from colocam.cli.shared_options import FrameOptions, NamedModel, with_options
from colocam.config.options import Options
from colocam.errors import ColocamError
from colocam.utils.progress import say

if TYPE_CHECKING:
    from colocam.serve.lessons import QuickLearning
    from colocam.types import Overlay


@with_options()
def localize(
    words: Annotated[
        list[str],
        Argument(
            metavar="[RUN] VIDEOS",
            help="A trained model (run folder or ONNX file; default: the ready model), then video files, folders of "
            "images, or folders of both; - for standard input; rtsp://…; /dev/video0.",
        ),
    ],
    out: Annotated[Path, Option("--out", "-o", help="Folder for the annotated videos and the localization tables.")],
    table: Annotated[
        str,
        Option(
            help="Format of the localization table: csv or parquet.",
            autocompletion=completion.one_of("csv", "parquet"),
        ),
    ] = "csv",
    model: NamedModel = None,
    *,
    no_video: Annotated[bool, Option("--no-video", help="Write only the localization tables.")] = False,
    overlay: Annotated[
        str,
        Option(
            help="What the annotated video shows besides the boxes: nothing (box), a line around the heat (contour), "
            "or the heat map (heat).",
            autocompletion=completion.one_of("box", "contour", "heat"),
        ),
    ] = "contour",
    overwrite: Annotated[
        bool, Option("--overwrite", help="Recompute existing results, and replace files that colocam did not write.")
    ] = False,
    format: Annotated[  # noqa: A002 - FFmpeg's word
        str | None, Option("--format", help="FFmpeg's name for the input format, e.g. v4l2 for a camera.")
    ] = None,
    workers: Annotated[
        int | None, Option(help="Processes that read videos and write results; default: chosen for the videos.")
    ] = None,
    options: Options,
    frames: FrameOptions,
) -> None:
    """Write an annotated mp4 and a localization table, one row per frame, for each video."""
    from colocam.inference.localize import Writing, localize_videos

    run, videos = _model_and_videos(words, model)
    for written in localize_videos(
        run,
        videos,
        out,
        Writing(table, not no_video, frames.choice, cast("Overlay", overlay)),
        overwrite=overwrite,
        format=format,
        workers=workers,
        options=options,
    ):
        say(f"wrote {' and '.join(str(path) for path in written if path is not None)}")


@with_options()
def label(
    words: Annotated[
        list[str],
        Argument(
            metavar="[RUN] VIDEOS",
            help="A trained model (run folder or ONNX file; default: the ready model), then a folder of videos, or a "
            "CSV or parquet table with 'path' and optionally 'tag'.",
        ),
    ],
    out: Annotated[Path, Option("--out", "-o", help="Folder for the labels; several commands can share it.")],
    model: NamedModel = None,
    *,
    shard: Annotated[str, Option(help="Label one of N equal shares of the videos, e.g. 3/8.")] = "1/1",
    workers: Annotated[int | None, Option(help="Worker processes; default: chosen for the machine.")] = None,
    ray: Annotated[str | None, Option(help="Address of a Ray cluster that labels the videos, e.g. auto.")] = None,
    limit: Annotated[float, Option(help="Give up a video after this many seconds without progress.")] = 300.0,
    retries: Annotated[int, Option(help="Retries for a video whose worker died or made no progress.")] = 3,
    retry_failed: Annotated[
        bool, Option("--retry-failed", help="Retry videos that an earlier command set aside.")
    ] = False,
    options: Options,
    frames: FrameOptions,
) -> None:
    """Write a localization table for each video of a catalogue; run it again to continue."""
    from colocam.inference.label import Execution, label_videos
    from colocam.inference.videos import parse_shard

    run, catalogues = _model_and_videos(words, model)
    if len(catalogues) > 1:
        got = ", ".join(catalogues)
        raise ColocamError(f"label takes a model and one folder or table, got {got}: list all videos in a table")
    label_videos(
        run,
        catalogues[0],
        out,
        Execution(parse_shard(shard), workers, ray, limit, retries, retry_failed),
        choice=frames.choice,
        options=options,
    )
    say(f"wrote {out / 'videos.parquet'}; next: colocam export {out} --to coco -o DATA")


@with_options("refine", "prior", "looks", "device")
def serve(
    words: Annotated[
        list[str] | None,
        Argument(
            metavar="[RUN] VIDEOS",
            help="A trained model (run folder or ONNX file; default: the ready model), then video files, folders of "
            "images, or folders of both.",
        ),
    ] = None,
    out: Annotated[
        Path | None, Option("--out", "-o", help="Folder for corrections, tables and proxies. Default: <RUN>-page.")
    ] = None,
    model: NamedModel = None,
    port: Annotated[
        int | None, Option(min=1, max=65535, help="Port. Default: the one used last time, or a free one.")
    ] = None,
    host: Annotated[str, Option(help="Address to listen on; open the printed address, which contains the token.")] = (
        "127.0.0.1"
    ),
    beside: Annotated[
        list[Path] | None, Option(metavar="RUN", help="Another model to compare with on the same videos; repeatable.")
    ] = None,
    *,
    no_open: Annotated[bool, Option("--no-open", help="Do not open the page in the browser.")] = False,
    options: Options,
) -> None:
    """See, correct and export what a model finds in videos, in the browser."""
    from colocam.serve.server import serve as start

    run, videos = _model_and_videos(words or [], model, alone=True)
    start(
        run,
        videos,
        out or Path(f"{run.resolve().stem}-page"),
        host=host,
        port=port,
        device=options.device,
        refine=options.refine,
        looks=options.looks,
        prior=options.prior,
        open_page=not no_open,
        beside=beside or [],
        quick=partial(_quick_lesson, device=options.device),
    )


def _model_and_videos(words: list[str], named: str | None, *, alone: bool = False) -> tuple[Path, list[str]]:
    """The model and the videos of a command, whose first word may be the model; ``alone``: also without videos."""
    from colocam.cli.ready_models import default_model, find_model, looks_like_model, refuse_no_videos

    if named is not None:
        return find_model(named), words
    if words and looks_like_model(words[0], more=alone or len(words) > 1):
        if len(words) == 1 and not alone:
            raise ColocamError(f"{words[0]} is a model: name the videos after it")
        return find_model(words[0]), words[1:]
    if words and Path(words[0]).is_dir():
        refuse_no_videos(Path(words[0]))
    run = default_model(words[0] if words else None)
    say(f"using the ready model {run.stem}; choose another with --model")
    return run, words


def _quick_lesson(run: Path, device: str | None) -> "QuickLearning":
    from colocam.training.learning.card import QuickLearner

    return QuickLearner(run, device)
