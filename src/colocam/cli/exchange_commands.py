"""Labels out and in: export them, import corrections, learn from these; write a model as one file.

Tests: tests/cli/test_cli.py, tests/labels/test_export.py, tests/labels/test_from_cvat.py.
"""

import math
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING, Annotated, Any, cast

from typer import Argument, Option

from colocam.cli import completion
from colocam.cli.shared_options import Command, Device
from colocam.utils.extras import not_installed
from colocam.utils.progress import say

PARTS = ("threshold", "presence", "head", "seeds", "projection", "replay")
"""What ``learn`` can leave out, repeated here because importing its module takes torch."""


if TYPE_CHECKING:
    from colocam.labels.labeled_videos import FrameChoice

IMPORT_SECONDS = 1800.0
"""That ``import`` may read at most; its memory is limited, too."""


class FormatsCommand(Command):
    """``export`` and ``import``, whose help lists the registered label formats."""

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - click's signature
        """Print the help."""
        from colocam.labels import readable, writable

        titles = {name: one.title for name, one in (writable() if self.name == "export" else readable()).items()}
        width = max(map(len, titles))
        lines = [f"  {name.ljust(width)}  {title}" for name, title in titles.items()]
        self.epilog = "\n".join(["\b", "Formats:", *lines])  # \b keeps the line breaks
        super().format_help(ctx, formatter)


def export(
    tables: Annotated[
        list[Path], Argument(help="Tables of 'colocam localize' or folders of them; or one folder of 'colocam label'.")
    ],
    to: Annotated[
        str, Option(metavar="FORMAT", help="Label format, see below.", autocompletion=completion.written_formats)
    ],
    out: Annotated[
        Path | None, Option("--out", "-o", help="Folder for the labels; replaces an earlier export.")
    ] = None,
    videos: Annotated[
        list[Path] | None, Option("--video", help="Video of each table, in order; or folder of the labeled videos.")
    ] = None,
    tolerance: Annotated[float, Option(help="How many pixels an interpolated box may be off.")] = 1.0,
    url: Annotated[str, Option(help="Prefix of video names in Label Studio.")] = "/data/local-files/?d=",
    push: Annotated[
        list[int] | None,
        Option(metavar="TASK", help="CVAT task to upload to, one per table (set CVAT_HOST and CVAT_ACCESS_TOKEN)."),
    ] = None,
    frames: Annotated[
        str,
        Option(
            help="Frames to write: all; answered (checked by people, or between checked ones); or checked.",
            autocompletion=completion.one_of("all", "answered", "checked"),
        ),
    ] = "all",
    checked: Annotated[
        Path | None,
        Option(help="Frames that you looked at: corrections, or a CSV of 'colocam review'; for --frames."),
    ] = None,
    split: Annotated[
        str,
        Option(
            metavar="TRAIN/VAL/TEST", help="Shares of train, validation and test videos, e.g. 80/10/10 (YOLO and VOC)."
        ),
    ] = "80/10/10",
    *,
    images: Annotated[bool, Option("--images", help="Also write the frames as image files.")] = False,
) -> None:
    """Write the boxes of tables as labels for a detector or an annotation tool."""
    from colocam.errors import ArgumentError
    from colocam.labels import Options
    from colocam.labels import export as run_export

    if out is None and not push:
        raise ArgumentError("out", "must name a folder for the labels")
    if push and to not in (able := ("cvat", "cvat-masks")):
        raise ArgumentError("push", f"only works with the formats {' and '.join(able)}, got {to}")
    with TemporaryDirectory(prefix="colocam-") as scratch:
        folder = out or Path(scratch) / "labels"
        options = Options(
            images=images,
            tolerance=tolerance,
            url=url,
            frames=cast("FrameChoice", frames),
            checked=checked,
            split=_shares(split),
        )
        run_export(tables, to, folder, videos=videos or [], options=options)
        if out is not None:
            say(f"wrote {out}")
        if push:
            from colocam.integrations.cvat_tasks import push as push_labels
            from colocam.labels.labeled_videos import read_videos
            from colocam.labels.table_files import tables_of

            push_labels(folder, read_videos(tables_of(tables), videos or []), push)


def _shares(text: str) -> tuple[float, float, float]:
    """Shares for training, validation and testing, from ``80/10/10``; two numbers leave out testing."""
    from colocam.errors import ArgumentError

    try:
        train, val, test = (float(part) for part in [*text.split("/"), *["0"] * (2 - text.count("/"))])
    except ValueError:
        train = val = test = -1.0
    if not (0 < train < math.inf and 0 <= val < math.inf and 0 <= test < math.inf):
        raise ArgumentError("split", f"must be shares such as 80/10/10 or 80/20, got {text!r}")
    return train, val, test


def export_model(
    run: Annotated[Path, Argument(help="Run folder with a trained model.")],
    out: Annotated[Path, Option("--out", "-o", help="File to write; must end in .onnx.")],
    *,
    half: Annotated[bool, Option("--half", help="Store weights in 16 bits: half the size, same speed.")] = False,
    int8: Annotated[
        Path | None,
        Option(metavar="VIDEOS", help="Compute maps in 8 bits, nearly twice as fast; these videos calibrate it."),
    ] = None,
) -> None:
    """Write a run's trained model as one ONNX file, which runs without torch."""
    try:
        from colocam.integrations.onnx_export import export_onnx
    except ModuleNotFoundError as error:
        raise not_installed(error, "export-model", "onnx") from error

    say(f"wrote {export_onnx(run, out, half=half, int8=int8)}; now: colocam localize {out} VIDEO -o OUT")


def import_(
    source: Annotated[Path, Argument(help="Labels: a file, a folder or a ZIP archive.")],
    from_: Annotated[
        str,
        Option("--from", metavar="FORMAT", help="Label format, see below.", autocompletion=completion.read_formats),
    ],
    out: Annotated[Path, Option("--out", "-o", help="CSV file of corrections to write; must not exist yet.")],
    tables: Annotated[
        list[Path] | None, Option("--tables", help="Table of a labeled video, or a folder of tables; repeatable.")
    ] = None,
    run: Annotated[
        Path | None, Option(help="Run folder whose tags are the known classes. Default: classes of the tables.")
    ] = None,
    tolerance: Annotated[float, Option(help="Pixels by which a predicted box may differ between key frames.")] = 1.0,
    checked: Annotated[str | None, Option(help="Frames that you looked at: a CSV of 'colocam review', or all.")] = None,
) -> None:
    """Read labels that were corrected in another tool, and write them as corrections.

    With --tables, frames whose boxes match the table become 'accepted'; those whose boxes were removed become 'none'.
    """
    from colocam.config.card import read_card
    from colocam.errors import ColocamError
    from colocam.labels import write_corrections
    from colocam.labels.limited_reading import import_labels_apart

    imported = import_labels_apart(
        source,
        from_,
        tables=tables or [],
        scratch=Path(gettempdir()),
        seconds=IMPORT_SECONDS,
        classes=() if run is None else read_card(run).tags,
        tolerance=tolerance,
        checked=checked,
    )
    for line in imported.left_out.lines():
        say(line)
    if not imported.corrections:
        raise ColocamError(f"{source}: no label matches a frame of the tables, so there is nothing to write")
    say(f"wrote {write_corrections(out, imported.corrections)}: {imported.summary()}")


def learn(
    run: Annotated[Path, Argument(help="Run folder of a trained model, or a ready model.")],
    corrections: Annotated[list[Path], Argument(help="Corrections: CSV files of 'colocam import'.")],
    out: Annotated[Path, Option("--out", "-o", help="Run folder to write; must not exist yet.")],
    without: Annotated[
        list[str] | None,
        Option(
            metavar="PART",
            help=f"Leave out: {', '.join(PARTS)}; repeatable.",
            autocompletion=completion.one_of(*PARTS),
        ),
    ] = None,
    steps: Annotated[int, Option(help="Training steps of the decoder; 0 leaves it unchanged.", min=0)] = 200,
    device: Device = None,
) -> None:
    """Learn from corrections, starting from a trained model.

    A fifth of the corrected videos is held out; an update is kept only if the model agrees with them as well as before.
    """
    from colocam.training.learning.lesson import learn as run_learning
    from colocam.training.learning.lesson import learning_without

    learned = run_learning(run, corrections, out, learning_without(*(without or ()), steps=steps), device=device)
    for line in learned.lines():
        say(line)
    say(f"wrote {learned.folder}; now: colocam localize {learned.folder} VIDEO -o OUT")
