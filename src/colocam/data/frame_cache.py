"""The frame cache: decode and resize every clip once, then read it from disk as a memory map.

A clip's entry is two files, named by a digest of everything that decides their content: ``.rgb`` holds the frames one
after the other, ``.npy`` one row per frame (index, time, original size). The second is written last; an entry without
it is incomplete.
"""

import json
import shutil
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError
from colocam.types import Clip, Image, VideoFrame
from colocam.utils.device import cores
from colocam.utils.digests import MEMORY, FileDigests, text_digest
from colocam.utils.files import DAMAGED_ARRAY, atomic_path, explain_os_errors, publish
from colocam.utils.locks import temporary_folder
from colocam.utils.progress import progress, raise_if_stopped, say
from colocam.video.fence import decode, decode_images, estimate_frames
from colocam.video.input import UnreadableError, VideoInput

ROW = np.dtype([("index", np.int64), ("pts", np.float64), ("width", np.int32), ("height", np.int32)])
RESERVE = 64 * 2**20
"""Bytes of disk that the cache leaves free."""

Files = list[dict[str, Clip]]
"""For each file, the clips cut from it, by their keys; the file is decoded once for all of them."""


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


def cache_frames(
    clips: Sequence[Clip], folder: Path, *, size: int, max_frames: int | None = None, workers: int | None = None
) -> list[CachedClip]:
    """Decode the clips that are not in the cache and open all of them.

    Clips that cannot be read are left out, with a warning each. An interruption loses only the files that were being
    decoded; the next call continues from there.

    Args:
        clips: the clips.
        folder: of the cache; collections may share it.
        size: side of a cached frame in pixels; the aspect ratio is ignored.
        max_frames: a longer clip keeps every 2nd, 4th, 8th … frame, so that the limit holds; None keeps all.
        workers: files decoded at once; None for one per core.

    Returns:
        The readable clips in the order of ``clips``.

    Raises:
        ColocamError: a tag has no readable training clip, no clip can be read, a clip has another content than its
            digest says, or the disk is too small.
    """
    with explain_os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    keys = [entry_key(clip, size, max_frames) for clip in clips]
    cached = [load_entry(clip, folder, key, size) for clip, key in zip(clips, keys, strict=True)]
    first = dict(zip(reversed(keys), reversed(clips), strict=True))  # of the clips with the same content
    missing = {key: first[key] for key, entry in zip(keys, cached, strict=True) if entry is None}
    if missing:
        _refuse_changed(missing.values(), folder)
        files = _by_file(missing)
        job = _Job(folder, size, max_frames, max(1, min(workers or cores(), len(files))))
        _check_disk(job, missing.values())
        warnings = _decode_all(job, files, done=sum(entry is not None for entry in cached))
        cached = [load_entry(clip, folder, key, size) for clip, key in zip(clips, keys, strict=True)]
        for clip, key, entry in zip(clips, keys, cached, strict=True):
            if key in warnings and clip is first[key]:
                say(f"warning: {warnings[key]}")
            elif entry is None:
                say(f"warning: skipped {clip.name}: it has the same content as {first[key].name}")
    readable = [entry for entry in cached if entry is not None]
    _check_tags(clips, readable)
    return readable


def _refuse_changed(clips: Iterable[Clip], folder: Path) -> None:
    """Refuse files that are not those of the run, before anything is decoded under their digests."""
    digests = FileDigests(folder / MEMORY)
    for clip in clips:
        if clip.digest and clip_digest(clip, digests) not in {"", clip.digest}:
            raise ColocamError(
                f"{clip.path} has changed since the run began: restore it, or train again in another folder"
            )
    digests.save()


def _by_file(clips: dict[str, Clip]) -> Files:
    files: dict[Path | str, dict[str, Clip]] = defaultdict(dict)
    for key, clip in clips.items():
        files[key if clip.frames else clip.path][key] = clip
    return list(files.values())


@dataclass(frozen=True)
class _Job:
    folder: Path
    size: int
    max_frames: int | None
    workers: int
    stop: threading.Event = field(default_factory=threading.Event)


def _check_disk(job: _Job, clips: Iterable[Clip]) -> None:
    """Refuse to start if the frames do not fit on the disk."""
    with ThreadPoolExecutor(job.workers) as executor:
        counts = list(executor.map(_estimate, clips))
    frames = sum(counts if job.max_frames is None else (min(count, job.max_frames) for count in counts))
    needed = frames * job.size**2 * 3 + RESERVE
    free = shutil.disk_usage(job.folder).free
    if needed > free:
        raise ColocamError(
            f"{job.folder}: the frame cache needs about {needed / 1e9:.1f} GB for {frames} frames, but only "
            f"{free / 1e9:.1f} GB are free: free some space, choose another folder, or cache fewer or smaller frames"
        )


def _estimate(clip: Clip) -> int:
    try:
        return len(clip.frames) or estimate_frames(clip.path, start=clip.start, end=clip.end)
    except UnreadableError:
        return 0


def _decode_all(job: _Job, files: Files, *, done: int) -> dict[str, str]:
    """Fill the cache, several files at once; return a warning for each entry that is missing or incomplete."""
    warnings: dict[str, str] = {}
    total = done + sum(len(clips) for clips in files)
    with progress("decoding", total, unit="clips", done=done) as advance, ThreadPoolExecutor(job.workers) as executor:
        futures = {executor.submit(_decode_file, job, clips): clips for clips in files}
        try:
            for future in as_completed(futures):
                warnings |= future.result()
                advance(len(futures[future]))
        except BaseException:
            job.stop.set()
            executor.shutdown(cancel_futures=True)
            raise
    return warnings


def _decode_file(job: _Job, clips: dict[str, Clip]) -> dict[str, str]:
    """Decode one file once for all clips cut from it; return warnings by entry."""
    with explain_os_errors(job.folder), temporary_folder(job.folder) as scratch:
        writers = {
            key: EntryWriter(job.folder, key, scratch, size=job.size, max_frames=job.max_frames) for key in clips
        }
        try:
            for frame in clip_frames(_whole([*clips.values()]), threads=max(1, cores() // job.workers)):
                raise_if_stopped("decoding")
                if job.stop.is_set():
                    return {}
                for key, clip in clips.items():
                    if (clip.start <= 0 or clip.start <= frame.pts) and (clip.end is None or frame.pts < clip.end):
                        writers[key].add(frame)
        except UnreadableError as error:
            return {key: f"skipped {clip.name}: {error}" for key, clip in clips.items()}
        warnings: dict[str, str] = {}
        for key, clip in clips.items():
            if not writers[key].seen:
                warnings[key] = f"skipped {clip.name}: {clip.path} has no frame from {clip.start} s to {clip.end} s"
                continue
            writers[key].commit()
            if lost := len(clip.frames) and len(clip.frames) - writers[key].seen:
                warnings[key] = f"{clip.name}: {lost} of {len(clip.frames)} images in {clip.path} cannot be read"
        return warnings


def _whole(clips: Sequence[Clip]) -> Clip:
    """The part of a file that holds all clips cut from it."""
    ends = [inf if clip.end is None else clip.end for clip in clips]
    return replace(clips[0], start=min(clip.start for clip in clips), end=None if inf in ends else max(ends))


def _check_tags(clips: Sequence[Clip], readable: Sequence[CachedClip]) -> None:
    lost = len(clips) - len(readable)
    if lost:
        say(f"warning: {lost} of {len(clips)} clips cannot be read and are skipped")
    if not readable:
        raise ColocamError("no clip can be read: see the warnings above")
    left = {entry.clip.tag for entry in readable if entry.clip.split == "train"}
    if empty := sorted({clip.tag for clip in clips if clip.split == "train"} - left):
        raise ColocamError(f"the tag {empty[0]!r} has no readable training video: see the warnings above")


def clip_frames(clip: Clip, *, threads: int = 0) -> Iterator[VideoFrame]:
    """Yield the clip's frames in order; ``threads`` as in :func:`decode`."""
    if clip.frames:
        return decode_images(clip.frames)
    source = VideoInput(str(clip.path), must_be_stored=True)  # no pipe: it is read more than once
    return decode(source, start=clip.start, end=clip.end, threads=threads)


def resize_square(image: Image, size: int) -> Image:
    """Resize to (size, size, 3), ignoring the aspect ratio: area average to shrink, interpolation to enlarge."""
    height, width = image.shape[:2]
    if width > size or height > size:
        image = cv2.resize(image, (min(width, size), min(height, size)), interpolation=cv2.INTER_AREA)  # type: ignore[assignment]
    if image.shape[:2] != (size, size):
        image = cv2.resize(image, (size, size), interpolation=cv2.INTER_LINEAR)  # type: ignore[assignment]
    return image


def entry_key(clip: Clip, size: int, max_frames: int | None) -> str:
    """Digest of everything that decides an entry's bytes.

    The content of the files is known by ``clip.digest``, so that a moved collection finds its frames again. Where that
    is not known, as in runs of version 0.1.0, it is assumed to change with the path, size or modification time.
    """
    stamps = [] if clip.digest else [[_stamp(path) for path in clip.frames or (clip.path,)]]
    made_from = [clip.digest or str(clip.path.absolute()), clip.start, clip.end, size, max_frames, *stamps]
    return text_digest(json.dumps(made_from))[:32]


def _stamp(path: Path) -> tuple[str, int, int]:
    try:
        status = path.stat()
    except OSError:  # deleted since; decoding reports it
        return path.name, -1, -1
    return path.name, status.st_size, status.st_mtime_ns


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


def with_digests(clips: Sequence[Clip], digests: FileDigests) -> tuple[Clip, ...]:
    """The clips with the digests of their files; files that ``digests`` does not remember are read."""
    digested = []
    with progress("checking videos", len(clips), unit="clips") as advance, ThreadPoolExecutor(cores()) as pool:
        clip_digests = pool.map(
            lambda clip: clip_digest(clip, digests), clips
        )  # where it is interrupted, it cancels the rest
        for clip, digest in zip(clips, clip_digests, strict=True):
            digested.append(replace(clip, digest=digest))
            advance()
    return tuple(digested)


def clip_digest(clip: Clip, digests: FileDigests) -> str:
    """Digest of the file, or of names and contents of the images; empty if they cannot be read."""
    try:
        if clip.frames:
            return digests.of_files(clip.frames)
        return digests.of_file(clip.path) if clip.path.is_file() else ""  # never a pipe, which would block
    except OSError:
        return ""
