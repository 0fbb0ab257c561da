"""Use a trained model: boxes in new videos."""

from pathlib import Path
from typing import Annotated

import typer

from colocam.cli.shared_options import Device
from colocam.utils.progress import say


def localize(
    run: Annotated[Path, typer.Argument(help="Run folder with a trained model, or an ONNX file made of it.")],
    videos: Annotated[
        list[str],
        typer.Argument(
            help="Videos, folders of pictures, folders of either; - for the standard input; rtsp://…; /dev/video0."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the annotated videos and the tables.")],
    table: Annotated[str, typer.Option(help="Format of the table: csv or parquet.")] = "csv",
    *,
    masks: Annotated[
        bool, typer.Option("--masks", help="Also write the object's outline, as a column 'mask'.")
    ] = False,
    smooth: Annotated[
        str, typer.Option(help="Steady boxes: offline (looks ahead), online (does not) or none.")
    ] = "offline",
    tag: Annotated[str | None, typer.Option(help="What the videos show, where you know it.")] = None,
    presence: Annotated[
        float | None, typer.Option(help="No box where the object is there with a lower probability, e.g. 0.5.")
    ] = None,
    instances: Annotated[
        bool, typer.Option("--instances", help="A box, a track and a row for every object, not for one per frame.")
    ] = False,
    threshold: Annotated[
        float | None, typer.Option(help="Share of the map's maximum from which it is foreground; else the model's own.")
    ] = None,
    color_mean: Annotated[
        str | None, typer.Option(help="Complete the maps by colour: off, frame or clip; else as the model was trained.")
    ] = None,
    focus: Annotated[
        bool | None,
        typer.Option("--focus/--no-focus", help="Draw the maps towards the tag; else as the model was trained."),
    ] = None,
    every: Annotated[int, typer.Option(help="Look at one frame of so many.")] = 1,
    fps: Annotated[float | None, typer.Option(help="Look at so many frames a second, those nearest in time.")] = None,
    start: Annotated[float | None, typer.Option("--from", help="Begin at this second, as 'pts' counts.")] = None,
    end: Annotated[float | None, typer.Option("--to", help="Stop before this second, as 'pts' counts.")] = None,
    frames: Annotated[str, typer.Option(help="Look at the frames A:B, from A (0 is the first) up to B.")] = ":",
    no_video: Annotated[bool, typer.Option("--no-video", help="Write the tables alone.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Also do again what is done already.")] = False,
    input_format: Annotated[
        str | None, typer.Option("--format", help="How FFmpeg is to read the input, e.g. v4l2 for a camera.")
    ] = None,
    batch: Annotated[int | None, typer.Option(help="Frames at once; without it what suits the device.")] = None,
    device: Device = None,
) -> None:
    """Write an annotated mp4 and a table with one row per frame of each video."""
    from colocam.inference.localize import Writing, localize_videos
    from colocam.video.frame_choice import FrameChoice, parse_frames

    choice = FrameChoice(every=every, fps=fps, start=start, end=end, frames=parse_frames(frames))
    for written in localize_videos(
        run,
        videos,
        out,
        Writing(table, not no_video, choice),
        overwrite=overwrite,
        format=input_format,
        device=device,
        batch=batch,
        masks=masks,
        smooth=smooth,
        tag=tag,
        presence=presence,
        instances=instances,
        threshold=threshold,
        color_mean=color_mean,
        focus=focus,
    ):
        say(f"wrote {' and '.join(str(path) for path in written if path is not None)}")
