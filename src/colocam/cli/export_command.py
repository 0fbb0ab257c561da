"""Write the boxes of localisation tables as labels; write a trained model as one file."""

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from colocam.cli.command import Command
from colocam.utils.extras import not_installed
from colocam.utils.progress import say


class ExportCommand(Command):
    """``export``, whose help lists the registered label formats."""

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - click's signature
        """Print the help."""
        from colocam.labels import writable

        width = max(map(len, writable()))
        lines = [f"  {name.ljust(width)}  {format_.title}" for name, format_ in writable().items()]
        self.epilog = "\n".join(["\b", "Formats:", *lines])  # \b keeps the line breaks
        super().format_help(ctx, formatter)


def export(
    tables: Annotated[
        list[Path],
        typer.Argument(
            help="Tables of 'colocam localize', edited or not, or folders of them; or one folder of 'colocam label'."
        ),
    ],
    to: Annotated[str, typer.Option(metavar="FORMAT", help="Label format, see below.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the labels; an earlier export is replaced.")
    ] = None,
    videos: Annotated[
        list[Path] | None,
        typer.Option("--video", help="Video of each table, in order; or folder of the labelled films."),
    ] = None,
    tolerance: Annotated[float, typer.Option(help="Pixels by which a box may be off between key frames.")] = 1.0,
    url: Annotated[str, typer.Option(help="Prefix of video names in Label Studio.")] = "/data/local-files/?d=",
    push: Annotated[
        list[int] | None,
        typer.Option(
            metavar="TASK", help="Upload to this task of CVAT; one per table (see CVAT_HOST, CVAT_ACCESS_TOKEN)."
        ),
    ] = None,
    *,
    images: Annotated[bool, typer.Option("--images", help="Also write the frames as image files.")] = False,
) -> None:
    """Write the boxes of tables as labels for a detector or an annotation tool."""
    from colocam.errors import ArgumentError
    from colocam.labels import Options
    from colocam.labels import export as run_export

    if out is None and not push:
        raise ArgumentError("out", "must name a folder for the labels")
    with ExitStack() as stack:
        folder = out or Path(stack.enter_context(TemporaryDirectory(prefix="colocam-"))) / "labels"
        options = Options(images=images, tolerance=tolerance, url=url)
        if push and to not in (able := ("cvat", "cvat-masks")):
            raise ArgumentError("push", f"uploads the formats {' and '.join(able)} alone, got {to}")
        run_export(tables, to, folder, videos=videos or [], options=options)
        if out is not None:
            say(f"wrote {out}")
        if push:
            from colocam.integrations.cvat_tasks import push as push_labels
            from colocam.labels.labelled_videos import read_videos
            from colocam.labels.table_files import tables_of

            push_labels(folder, read_videos(tables_of(tables), videos or []), push)


def export_model(
    run: Annotated[Path, typer.Argument(help="Run folder with a trained model.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write; it ends in .onnx.")],
) -> None:
    """Write the trained model of a run as one ONNX file, which needs no torch."""
    try:
        from colocam.inference.onnx_export import export_onnx
    except ModuleNotFoundError as error:
        raise not_installed(error, "export-model", "onnx") from error

    say(f"wrote {export_onnx(run, out)}; now: colocam localize {out} VIDEO -o OUT")
