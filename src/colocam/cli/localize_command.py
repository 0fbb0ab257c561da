"""``colocam localize``: find objects in videos with a trained model."""

from pathlib import Path
from typing import Annotated

import typer

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
    masks: Annotated[
        bool, typer.Option("--masks", help="Also write the outline of the object, in the column 'mask'.")
    ] = False,
    smooth: Annotated[
        str, typer.Option(help="Smooth boxes over time: offline (with look-ahead), online (past frames only) or none.")
    ] = "offline",
    tag: Annotated[str | None, typer.Option(help="Class that the videos show, if you know it.")] = None,
    presence: Annotated[
        float | None, typer.Option(help="Write no box where the probability of presence is below this value, e.g. 0.5.")
    ] = None,
    instances: Annotated[
        bool,
        typer.Option(
            "--instances", help="Write a box, a track and a row for every object, instead of one object per frame."
        ),
    ] = False,
    refine: Annotated[
        str | None,
        typer.Option(
            metavar="SEGMENTER",
            help="Refine boxes to masks: MobileSAM as .safetensors, or a folder or pair of ONNX files of SAM or SAM 2.",
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Foreground threshold relative to the map's maximum, 0–1; default: stored with the model."),
    ] = None,
    color_mean: Annotated[
        str | None, typer.Option(help="Complete maps by colour: off, frame or clip; default: as the model was trained.")
    ] = None,
    focus: Annotated[
        bool | None,
        typer.Option(
            "--focus/--no-focus", help="Restrict maps to the class of the video; default: as the model was trained."
        ),
    ] = None,
    chooser: Annotated[
        str | None, typer.Option(help="Rule that chooses the box among a map's contours; default: that of the model.")
    ] = None,
    every: Annotated[int, typer.Option(help="Process every N-th frame.")] = 1,
    fps: Annotated[
        float | None, typer.Option(help="Process this many frames per second, those nearest in time.")
    ] = None,
    start: Annotated[
        float | None, typer.Option("--from", help="Start at this presentation time in seconds (column 'pts').")
    ] = None,
    end: Annotated[
        float | None, typer.Option("--to", help="Stop before this presentation time in seconds (column 'pts').")
    ] = None,
    frames: Annotated[
        str, typer.Option(help="Process the frames with index A to B−1, written A:B; the first frame is 0.")
    ] = ":",
    no_video: Annotated[bool, typer.Option("--no-video", help="Write only the localisation tables.")] = False,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Recompute existing results, and replace files that colocam did not write."),
    ] = False,
    format: Annotated[  # noqa: A002 - FFmpeg's word
        str | None, typer.Option("--format", help="FFmpeg's name of the input format, e.g. v4l2 for a camera.")
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(
            help="New frames per network pass at most. Boxes do not depend on it; small values give results earlier."
        ),
    ] = None,
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
