"""Write the boxes of localisation tables in the formats of detectors and annotation tools."""

from collections.abc import Sequence
from pathlib import Path

from colocam.errors import ArgumentError, ColocamError
from colocam.labels.formats import writable
from colocam.labels.labelled_videos import LabelledVideo, LabelSet, Options, read_videos
from colocam.labels.table_files import tables_of
from colocam.utils.extensions import unknown
from colocam.utils.files import atomic_folder

MARKER = ".colocam-export.json"
"""File that marks a folder as an export."""


def export(
    tables: Sequence[str | Path],
    to: str,
    out: str | Path,
    *,
    videos: Sequence[str | Path] = (),
    options: Options | None = None,
) -> Path:
    """Write the boxes of ``tables`` into a folder; the folder appears only when it is complete.

    Args:
        tables: localisation tables, CSV or parquet, one per video, or folders of them; or one folder of ``colocam
            label``.
        to: one of :data:`colocam.labels.FORMATS`.
        out: the folder; an earlier export is replaced if no file of it was changed, other files are never replaced.
        videos: the video of each table, in order; by default what ``<table>.video.json`` describes. For a folder of
            labels, the folder that the names of its films are relative to; only ``options.images`` needs it.
        options: images, tolerance of key frames, prefix of URLs.
    """
    out, options = Path(out), options or Options()
    formats = writable()
    if to not in formats or (write := formats[to].write) is None:
        raise ArgumentError("to", f"must be a label format, got {to!r}{unknown(to, list(formats))}")
    if options.images and not formats[to].images:
        able = ", ".join(name for name, format_ in formats.items() if format_.images)
        raise ArgumentError("images", f"cannot be written for {to!r}: only for {able}")
    if not options.tolerance >= 0:
        raise ArgumentError("tolerance", f"must be 0 or more pixels, got {options.tolerance}")
    labels = LabelSet(_read([Path(table) for table in tables], [Path(video) for video in videos]))
    if not labels.classes:
        raise ColocamError(f"{tables[0]}: no row has a box, so there is nothing to export")
    with atomic_folder(out, MARKER) as folder:
        write(labels, folder, options)
    return out


def _read(tables: list[Path], videos: list[Path]) -> Sequence[LabelledVideo]:
    if not any(table.is_dir() for table in tables):
        return read_videos(tables, videos)
    from colocam.labels.labelled_films import is_labels, read_labels  # noqa: PLC0415 - pyarrow is an extra

    if not any(is_labels(table) for table in tables):
        return read_videos(tables_of(tables), videos)
    if len(tables) > 1 or len(videos) > 1:
        raise ColocamError(
            "a folder of 'colocam label' is exported by itself: name it alone, with at most one `videos`"
        )
    return read_labels(tables[0], videos[0] if videos else None)
