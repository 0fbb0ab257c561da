"""Write the boxes of localisation tables as labels, or a trained model as one file."""

from pathlib import Path
from typing import Annotated

import typer

from colocam.errors import ColocamError
from colocam.utils.progress import say


def export(
    tables: Annotated[
        list[Path],
        typer.Argument(help="Tables of 'colocam localize', one per video, edited or not; a run folder with --model."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the labels; file for a model.")],
    to: Annotated[
        str | None, typer.Option(help="coco, yolo, voc, mot, cvat, label-studio, csv, parquet or masks.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Instead of tables, the trained model of a run: onnx.")] = None,
    video: Annotated[
        list[Path] | None, typer.Option(help="Video of each table, in order; without it TABLE.video.json is read.")
    ] = None,
    tolerance: Annotated[float, typer.Option(help="Pixels a box may be off between key frames.")] = 1.0,
    url: Annotated[
        str, typer.Option(help="What stands before a video's name in Label Studio.")
    ] = "/data/local-files/?d=",
    *,
    images: Annotated[bool, typer.Option("--images", help="Also write the frames as JPEG.")] = False,
) -> None:
    """Write the boxes of tables as labels for a detector or an annotation tool; or a trained model as one file."""
    from colocam.export import Options
    from colocam.export import export as run_export

    options = Options(images=images, tolerance=tolerance, url=url)
    if (to is None) == (model is None):
        raise ColocamError("give either --to FORMAT with tables of boxes, or --model onnx with a run folder")
    if to is not None:
        say(f"wrote {run_export(tables, to, out, videos=video or [], options=options)}")
        return
    if model != "onnx":
        raise ColocamError(f"--model {model}: give onnx")
    if video or options != Options():
        raise ColocamError("--video, --tolerance, --url and --images are for tables of boxes: leave them out")
    if len(tables) != 1:
        raise ColocamError(f"--model onnx: give one run folder, not {len(tables)}")
    from colocam.export.onnx_model import export_onnx

    say(f"wrote {export_onnx(tables[0], out)}; now: colocam localize {out} VIDEO -o OUT")
