"""One clip's entry in the frame cache.

An entry is two files, named by a digest of everything that decides their content: ``.rgb`` holds the frames one after
the other, ``.npy`` one row per frame (index, time, original size). The second is written last; an entry without it is
incomplete.
"""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from colocam.data.clip_frames import resize_square
from colocam.types import Clip, VideoFrame
from colocam.utils.files import DAMAGED_ARRAY, atomic_path, publish

ROW = np.dtype([("index", np.int64), ("pts", np.float64), ("width", np.int32), ("height", np.int32)])


@dataclass(frozen=True, eq=False)
class CachedClip:
    """A clip whose frames are on disk; small in memory and when sent to another process.

    Attributes:
        clip: the clip they were decoded from.
        file: the raw frames.
        size: side of a cached frame in pixels.
        rows: (T,) of :data:`ROW`, one per frame.
    """

    clip: Clip
    file: Path
    size: int
    rows: npt.NDArray[np.void] = field(repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def frames(self) -> np.memmap[tuple[int, ...], np.dtype[np.uint8]]:
        """(T, size, size, 3) uint8 RGB, mapped at each access: a process can hold only about 65,000 memory maps."""
        return np.memmap(self.file, np.uint8, "r", shape=(len(self.rows), self.size, self.size, 3))

    @property
    def pts(self) -> npt.NDArray[np.float64]:
        """(T,) presentation times in seconds."""
        return self.rows["pts"]

    @property
    def index(self) -> npt.NDArray[np.int64]:
        """(T,) indices of the frames in their video."""
        return self.rows["index"]

    @property
    def sizes(self) -> npt.NDArray[np.int32]:
        """(T, 2) original width and height of each frame; they may differ in a folder of images."""
        return np.stack([self.rows["width"], self.rows["height"]], axis=1)


def entry_key(clip: Clip, size: int, max_frames: int | None) -> str:
    """Digest of everything that decides an entry's bytes.

    The content of the files is known by ``clip.digest``, so that a moved collection finds its frames again. Where that
    is not known, as in runs of version 0.1.0, it is assumed to change with the path, size or modification time.
    """
    if clip.digest:
        known = [clip.digest, clip.start, clip.end, size, max_frames]
        return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:32]
    stamps = [_stamp(path) for path in clip.frames or (clip.path,)]
    made_from = [str(clip.path.absolute()), clip.start, clip.end, size, max_frames, stamps]
    return hashlib.sha256(json.dumps(made_from).encode()).hexdigest()[:32]


def load_entry(clip: Clip, folder: Path, key: str, size: int) -> CachedClip | None:
    """Open a complete entry; None if there is none or its files do not match."""
    file = folder / f"{key}.rgb"
    try:
        rows = np.load(folder / f"{key}.npy", allow_pickle=False)
        whole = rows.dtype == ROW and len(rows) > 0 and file.stat().st_size == len(rows) * size * size * 3
    except DAMAGED_ARRAY:
        return None
    return CachedClip(clip, file, size, rows) if whole else None


class EntryWriter:
    """Write a clip's frames one by one and keep at most ``max_frames`` of them, evenly spread.

    The number of frames is not known in advance. When there is one too many, every second frame is dropped, and from
    then on only every second one is kept: the kept frames are always every 2^k-th. Memory holds a single frame.
    """

    def __init__(self, folder: Path, key: str, scratch: Path, *, size: int, max_frames: int | None) -> None:
        self.seen = 0
        self._target = folder / key
        self._file = scratch / f"{key}.rgb"
        self._size = size
        self._max_frames = max_frames
        self._stride = 1
        self._rows: list[tuple[int, float, int, int]] = []

    def add(self, frame: VideoFrame) -> None:
        """Keep the frame if its index is a multiple of the current stride."""
        if self.seen % self._stride == 0:
            # Reopened each time: a long video may have more shots than a process may have open files.
            with self._file.open("ab") as file:
                file.write(resize_square(frame.image, self._size).tobytes())
            height, width = frame.image.shape[:2]
            self._rows.append((frame.index, frame.pts, width, height))
            if self._max_frames is not None and len(self._rows) > self._max_frames:
                self._halve()
        self.seen += 1

    def _halve(self) -> None:
        frames = np.memmap(self._file, np.uint8, "r+", shape=(len(self._rows), self._size * self._size * 3))
        self._rows = self._rows[::2]
        self._stride *= 2
        for index in range(1, len(self._rows)):
            frames[index] = frames[2 * index]
        frames.flush()
        with self._file.open("r+b") as file:
            file.truncate(len(self._rows) * frames.shape[1])

    def commit(self) -> None:
        """Make the entry visible."""
        publish(self._file, self._target.with_suffix(".rgb"))
        with atomic_path(self._target.with_suffix(".npy")) as temporary:
            np.save(temporary, np.array(self._rows, ROW))


def _stamp(path: Path) -> tuple[str, int, int]:
    try:
        status = path.stat()
    except OSError:  # deleted since; decoding reports it
        return path.name, -1, -1
    return path.name, status.st_size, status.st_mtime_ns
