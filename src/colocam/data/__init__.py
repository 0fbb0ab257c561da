"""Videos and their tags: catalogue, true boxes, data sets, frame cache, samplers and batches.

Data sets that ``colocam index`` knows are entries of :data:`DATASETS`: each reads files into an :class:`Index`. To add
one, write a function and register it; its keyword arguments become options of the command:

>>> from colocam.data import DATASETS, Dataset, Index, Truth
>>> from colocam.types import Box, Clip
>>> def read(root, *, year: int = 2026) -> Index:
...     clip = Clip("cat/1", tag="cat", split="test", path=root / f"{year}.mp4", video="cat/1")
...     return Index((clip,), Truth({"cat/1": {0: [Box(1, 2, 30, 40)]}}))
>>> DATASETS["mine"] = Dataset("my videos", read)
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from colocam.data.catalogue import Catalogue, read_catalogue
from colocam.data.frame_cache import CachedClip, cache_frames
from colocam.data.truth import Index, Truth, count, index_of_table, read_truth, write_index
from colocam.data.youtube_objects import read_archive
from colocam.errors import ArgumentError
from colocam.types import SPLITS
from colocam.utils.extensions import unknown
from colocam.utils.progress import say

__all__ = [
    "DATASETS",
    "CachedClip",
    "Catalogue",
    "Dataset",
    "Index",
    "Truth",
    "cache_frames",
    "index_dataset",
    "read_catalogue",
    "read_truth",
]


class Dataset(NamedTuple):
    """A data set that can be indexed.

    Attributes:
        title: what it is, in a few words; the command line's help prints it.
        read: reads it; the first argument is a path, further ones are options of the command. A text in
            ``Annotated[int, "Seed of the sampling."]`` is the option's help.
    """

    title: str
    read: Callable[..., Index]


DATASETS: dict[str, Dataset] = {
    "youtube-objects": Dataset("YouTube-Objects, version 1.0 or 2.2", read_archive),
    "frames": Dataset("single frames of shots, given as a table with one row per box", index_of_table),
}
"""Data sets by the name that ``colocam index`` takes."""


def index_dataset(name: str, root: Path, out: Path | None = None, **options: Any) -> tuple[Path, Path]:  # noqa: ANN401
    """Index a data set, print what was found, and write its manifest and its true boxes.

    Args:
        name: one of :data:`DATASETS`.
        root: the data set's folder or file.
        out: folder to write to; by default one in the current folder that is named after the data set.
        options: keyword arguments of ``DATASETS[name].read``.

    Returns:
        The paths of ``manifest.csv`` and ``truth.csv``.
    """
    if name not in DATASETS:
        raise ArgumentError("name", f"must be a data set, got {name!r}{unknown(name, list(DATASETS))}")
    index = DATASETS[name].read(root, **options)
    _print_counts(index)
    for note in index.notes:
        say(f"note: {note}")
    return write_index(out or Path(index.name or f"{name}-index"), index)


def _print_counts(index: Index) -> None:
    console, counted = Console(), count(index)
    if index.summary:
        console.print(index.summary, soft_wrap=True)
    if not index.published:
        columns = ("frames", "shots", "videos", "labeled frames", "boxes")
        table = Table("", *columns)
        for split in SPLITS:
            table.add_row(split, *(f"{counted[f'{split} {column}']:,}" for column in columns))
        console.print(table)
        return
    table = Table("", "found", "published", "")
    different = [name for name, published in index.published.items() if counted[name] != published]
    for name, published in index.published.items():
        table.add_row(name, f"{counted[name]:,}", f"{published:,}", "DIFFERS" if name in different else "")
    console.print(table)
    if different:
        say(f"warning: these counts DIFFER from the published ones: {', '.join(different)}")
