"""Known data sets: make a manifest and a table of true boxes."""

from pathlib import Path
from typing import Annotated

import typer

from colocam.utils.progress import say

index_app = typer.Typer(no_args_is_help=True, help="Make a manifest and a table of true boxes of a known data set.")


@index_app.command("youtube-objects")
def index_youtube_objects(
    root: Annotated[Path, typer.Argument(help="Folder of the archive, with one folder per class in it.")],
    version: Annotated[str, typer.Option(help="Version of the archive: 1.0 or 2.2.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for manifest.csv and truth.csv.")] = None,
    lists: Annotated[
        Path | None, typer.Option("--lists", "--val-lists", help="Folder of split lists, for the validation videos.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Draws the validation videos where no list names them.")] = 0,
) -> None:
    """Index YouTube-Objects and print what was found beside the published counts."""
    from colocam.data.indexing import index_youtube_objects as run_index

    manifest, truth = run_index(root, version, out, lists=lists, seed=seed)
    say(f"wrote {manifest} and {truth}; now: colocam train {manifest} --out RUN")


@index_app.command("frames")
def index_frames(
    table: Annotated[Path, typer.Argument(help="Table: video, shot, frame, class, split, width, height, x1 … y2.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for manifest.csv and truth.csv.")],
) -> None:
    """Index single frames of shots, given as a table with one row per box, and print what was found."""
    from colocam.data.indexing import index_frames as run_index

    manifest, truth = run_index(table, out)
    say(f"wrote {manifest} and {truth}; now: colocam train {manifest} --out RUN")
