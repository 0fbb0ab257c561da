"""Label files in a ZIP archive, as CVAT and Label Studio give them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile, is_zipfile

from colocam.errors import ColocamError
from colocam.utils.files import stored

LABELS = frozenset({".xml", ".json", ".txt", ".yaml", ".yml", ".csv", ".parquet", ".ini", ".names"})
"""Endings of the files that are unpacked; images are not needed."""
MOST_FILES = 1 << 20
MOST_BYTES = 1 << 30
SMALL_BYTES = 1 << 24
MOST_TIMES = 200
"""Labels of an archive may be so many times larger than the archive, if they are larger than :data:`SMALL_BYTES`; real
ones are about 20 times larger."""


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The file or folder itself, or a temporary folder with the label files of an archive."""
    if not stored(path).exists():
        raise ColocamError(f"cannot read {path}: there is no such file or folder")
    if path.is_dir() or not is_zipfile(path):
        yield path
        return
    with TemporaryDirectory(prefix="colocam-") as folder:
        # The folder keeps the archive's name, by which some formats name their video.
        place = Path(folder) / path.stem
        place.mkdir()
        try:
            with ZipFile(path) as archive:
                members = [one for one in archive.infolist() if Path(one.filename).suffix.lower() in LABELS]
                size = sum(one.file_size for one in members)
                most = min(MOST_BYTES, max(SMALL_BYTES, MOST_TIMES * path.stat().st_size))
                if len(members) > MOST_FILES or size > most:
                    raise ColocamError(
                        f"{path}: {len(members)} label files of {size >> 20} MiB are too large for this archive: "
                        "unpack it and give the folder"
                    )
                for one in members:
                    archive.extract(one, place)  # removes .. and the root from names
        except (BadZipFile, OSError, RuntimeError, NotImplementedError, ValueError, EOFError) as error:
            raise ColocamError(f"{path}: not a whole ZIP archive: download it again, or give a folder") from error
        yield place
