"""``colocam localize``: find objects in videos with a trained model."""

from pathlib import Path
from typing import Annotated

import typer

from colocam.cli.result_options import (
    Batch,
    Chooser,
    ColorMeanMode,
    End,
    Every,
    Focus,
    Fps,
    FrameRange,
    Instances,
    LeastPresence,
    Masks,
    Refine,
    Smoothing,
    Start,
    Tag,
    Threshold,
)
from colocam.cli.shared_options import Device
from colocam.utils.progress import say


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
    masks: Masks = False,
    smooth: Smoothing = "offline",
    tag: Tag = None,
    presence: LeastPresence = None,
    instances: Instances = False,
    refine: Refine = None,
    threshold: Threshold = None,
    color_mean: ColorMeanMode = None,
    focus: Focus = None,
    chooser: Chooser = None,
    every: Every = 1,
    fps: Fps = None,
    start: Start = None,
    end: End = None,
    frames: FrameRange = ":",
    no_video: Annotated[bool, typer.Option("--no-video", help="Write only the localisation tables.")] = False,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Recompute existing results, and replace files that colocam did not write."),
    ] = False,
    format: Annotated[  # noqa: A002 - FFmpeg's word
        str | None, typer.Option("--format", help="FFmpeg's name of the input format, e.g. v4l2 for a camera.")
    ] = None,
    batch: Batch = None,
    workers: Annotated[
        int | None,
        typer.Option(
            help="Processes that read films and write results; results do not change. Default: as suits the films."
        ),
    ] = None,
    device: Device = None,
) -> None:
    """Write an annotated mp4 and a localisation table, one row per frame, for each video."""
    from colocam.inference.localize import Writing, localize_videos
    from colocam.video.frame_choice import FrameChoice, parse_frames

    choice = FrameChoice(every=every, fps=fps, start=start, end=end, frames=parse_frames(frames))
    for written in localize_videos(
        run,
        videos,
        out,
        Writing(table, not no_video, choice),
        overwrite=overwrite,
        format=format,
        device=device,
        refine=refine,
        workers=workers,
        prepare="colocam.cli.extensions:load_extensions",
        batch=batch,
        masks=masks,
        smooth=smooth,
        tag=tag,
        presence=presence,
        instances=instances,
        threshold=threshold,
        color_mean=color_mean,
        focus=focus,
        chooser=chooser,
    ):
        say(f"wrote {' and '.join(str(path) for path in written if path is not None)}")
