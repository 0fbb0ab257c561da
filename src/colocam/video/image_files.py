"""Image files of a folder, in natural order, and which file endings cannot be videos."""

import os
import re
from pathlib import Path

from colocam.errors import ColocamError

IMAGE_ENDINGS = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm"})
# Any other ending may be a video: FFmpeg reads hundreds of formats and knows them by their content.
NOT_VIDEO_ENDINGS = IMAGE_ENDINGS | {
    *(".txt", ".md", ".rst", ".pdf", ".html", ".htm", ".xml", ".doc", ".docx", ".url", ".nfo", ".log"),
    *(".csv", ".tsv", ".parquet", ".json", ".jsonl", ".yaml", ".yml", ".toml", ".ini", ".xls", ".xlsx", ".db"),
    *(".srt", ".vtt", ".ass", ".ssa", ".sub", ".mp3", ".wav", ".flac", ".m4a", ".ogg", ".aac"),
    *(".mat", ".npy", ".npz", ".py", ".sh", ".ipynb", ".zip", ".tar", ".gz", ".7z", ".rar", ".part", ".tmp"),
}


def natural_key(name: str) -> tuple[tuple[int, int, str, str], ...]:
    """Sort key that puts frame2 before frame10; numbers may have any length."""
    parts = re.findall(r"(0*([0-9]+))|([^0-9]+)", name)
    return tuple((0, len(digits), digits, whole) if digits else (1, 0, text, "") for whole, digits, text in parts)


def images_of(folder: Path) -> tuple[Path, ...]:
    """Image files of a folder in natural order."""
    return tuple(folder / e.name for e in visible_entries(folder) if ending_of(e) in IMAGE_ENDINGS and is_file(e))


def visible_entries(folder: Path) -> list[os.DirEntry[str]]:
    """Entries of a folder whose names do not begin with a dot, in natural order."""
    try:
        with os.scandir(folder) as entries:
            return sorted((e for e in entries if not e.name.startswith(".")), key=lambda entry: natural_key(entry.name))
    except OSError as error:
        raise ColocamError(f"cannot read the folder {folder}: {error.strerror}") from error


def is_file(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a regular file or a link to one; False where a link leads in a circle."""
    try:
        return entry.is_file()
    except OSError:
        return False


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder or a link to one; False where a link leads in a circle."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def ending_of(entry: os.DirEntry[str]) -> str:
    """The ending of a file name, with its dot, in lower case."""
    return os.path.splitext(entry.name)[1].lower()  # noqa: PTH122 - making a Path of each of 100,000 names is slow
