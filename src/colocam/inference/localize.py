"""A video file in, an annotated video and a table of boxes out."""

from itertools import groupby
from pathlib import Path

from colocam.data.source import describe, write_source
from colocam.data.video import decode, estimate_frames, probe
from colocam.errors import ColocamError
from colocam.files import explain_os_errors
from colocam.inference.localizer import Localizer
from colocam.inference.sinks import AnnotatedVideo, LocalizationTable
from colocam.progress import progress

TABLES = ("csv", "parquet")


def localize_file(
    run: str | Path,
    video: str | Path,
    out: str | Path,
    *,
    table: str = "csv",
    masks: bool = False,
    smooth: str = "offline",
    tag: str | None = None,
    presence: float | None = None,
    instances: bool = False,
    threshold: float | None = None,
    device: str | None = None,
) -> tuple[Path, Path]:
    """Write ``OUT/<video>.mp4`` with heat-map, boxes and labels, and ``OUT/<video>.<table>``, a row per object.

    ``OUT/<video>.video.json`` says what ``colocam export`` must know of the video itself.

    Args:
        run: folder of a trained model, or an ONNX file made of it.
        video: any file FFmpeg reads.
        out: folder, made if need be.
        table: ``csv`` or ``parquet``.
        masks: also write the object's outline, as a column ``mask``.
        smooth: ``offline``, ``online`` or ``none``, see :class:`colocam.inference.localizer.Options`.
        tag: what the video is known to show; without it, what the classifier sees in it.
        presence: write no box where the object is there with a lower probability; None writes all.
        instances: write a row for every object in a frame, see :class:`colocam.inference.localizer.Options`.
        threshold: of the map, relative to its maximum; None takes the model's own.
        device: ``cpu`` or ``cuda``; the GPU if there is one.
    """
    if table not in TABLES:
        raise ColocamError(f"--table {table}: give one of {', '.join(TABLES)}")
    video, out = Path(video), Path(out)
    localizer = Localizer.load(
        run,
        device,
        masks=masks,
        smooth=smooth,
        tag=tag,
        presence=presence,
        instances=instances,
        threshold=threshold,
    )
    info = probe(video)
    with explain_os_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    annotated, rows = out / f"{video.stem}.mp4", out / f"{video.stem}.{table}"
    if annotated.resolve() == video.resolve():
        raise ColocamError(f"{annotated} would overwrite the video itself: choose another output folder")
    frames = 0
    with (
        LocalizationTable(rows, _columns(localizer)) as listed,
        AnnotatedVideo(annotated, info) as drawn,
        progress(f"localizing {video.name}", estimate_frames(video), unit="frames") as advance,
    ):
        for _, told in groupby(localizer.stream(decode(video)), key=lambda one: one[0].index):
            (frame, *_), objects = zip(*told, strict=True)
            for found in objects:
                listed.write(found)
            drawn.write(frame.image, *objects)
            frames = frame.index + 1
            advance()
    write_source(rows, describe(video, info, frames))
    return annotated, rows


def _columns(localizer: Localizer) -> list[str]:
    """The columns that a table has on demand."""
    wanted = {
        "track": localizer.smooth != "none",
        "presence": True,
        "margin": not localizer.instances,
        "mask": localizer.masks,
    }
    return [name for name, there in wanted.items() if there]
