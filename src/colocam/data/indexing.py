"""Known data sets become a manifest and a table of true boxes; what was found is printed."""

from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from colocam.data.index import Index, index_of_table, write_index
from colocam.data.youtube_objects import PUBLISHED, read_archive
from colocam.data.youtube_objects.counts import count
from colocam.types import SPLITS
from colocam.utils.progress import say


def index_youtube_objects(
    root: Path, version: str, out: Path | None = None, *, lists: Path | None = None, seed: int = 0
) -> tuple[Path, Path]:
    """Index an archive (see :func:`read_archive`) into ``out``, ``youtube-objects-<version>`` by default.

    Prints the counts beside the published ones; returns the paths of the manifest and of the table of boxes.
    """
    archive = read_archive(root, version, lists=lists, seed=seed)
    found = asdict(count(archive.index))
    published = asdict(next(counts for name, counts in PUBLISHED.items() if name == version))
    validation = f"drawn with seed {seed}" if archive.drawn else "from the list"
    console = Console()
    console.print(f"YouTube-Objects v{version}, {archive.layout}; validation videos {validation}", soft_wrap=True)
    table = Table("", "found", "published", "")
    for name, number in found.items():
        differs = "" if number == published[name] else "DIFFERS"
        table.add_row(name.replace("_", " "), f"{number:,}", f"{published[name]:,}", differs)
    console.print(table)
    for note in archive.notes:
        say(f"note: {note}")
    if different := [name.replace("_", " ") for name in found if found[name] != published[name]]:
        say(f"WARNING: the counts DIFFER from the published ones: {', '.join(different)}")
        if archive.drawn:
            say("(shots of train, frames and boxes of val depend on the draw; the published draw needs --lists)")
    return write_index(out or Path(f"youtube-objects-{version}"), archive.index)


def index_frames(table: Path, out: Path) -> tuple[Path, Path]:
    """Index a table of frames (see :func:`index_of_table`) into ``out``; prints counts, returns both tables' paths."""
    index = index_of_table(table)
    _print_splits(index)
    return write_index(out, index)


def _print_splits(index: Index) -> None:
    table = Table("", "frames", "shots", "videos", "frames with boxes", "boxes")
    for split in SPLITS:
        clips = [clip for clip in index.clips if clip.split == split]
        labelled = [boxes for clip in clips for boxes in index.truth.frames.get(clip.name, {}).values()]
        numbers = (
            sum(len(clip.frames) for clip in clips),
            len(clips),
            len({clip.video for clip in clips}),
            len(labelled),
            sum(map(len, labelled)),
        )
        table.add_row(split, *(f"{number:,}" for number in numbers))
    Console().print(table)
