"""The frame cache: decode and resize every clip once, then read it from disk as a memory map."""

import shutil
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from colocam.data.cache_entry import CachedClip, EntryWriter, entry_key, load_entry
from colocam.data.clip_digests import refuse_changed
from colocam.data.clip_frames import clip_frames, stored
from colocam.errors import ColocamError
from colocam.types import Clip, VideoFrame
from colocam.utils.device import cores
from colocam.utils.digests import MEMORY, FileDigests
from colocam.utils.files import explain_os_errors
from colocam.utils.locks import temporary_folder
from colocam.utils.progress import progress, raise_if_stopped, say
from colocam.video.fence import decode, estimate_frames
from colocam.video.input import UnreadableError

__all__ = ["CachedClip", "cache_frames"]

RESERVE = 64 * 2**20
"""Bytes of disk that the cache leaves free."""
SECONDS_BETWEEN_LOOKS = 0.5
"""Longest delay before a request to stop is noticed while a long file is decoded."""

Files = list[dict[str, Clip]]
"""For each file, the clips cut from it, by their keys; the file is decoded once for all of them."""


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
    first = {key: clip for clip, key in reversed(list(zip(clips, keys, strict=True)))}
    missing = dict.fromkeys(key for key, entry in zip(keys, cached, strict=True) if entry is None)
    files = _by_file({key: first[key] for key in missing})
    warnings: dict[str, str] = {}
    if files:
        _refuse_changed([clip for group in files for clip in group.values()], folder)
        job = _Job(folder, size, max_frames, max(1, min(workers or cores(), len(files))))
        _check_disk(job, files)
        warnings = _decode_all(job, files, done=sum(entry is not None for entry in cached))
        cached = [
            entry or load_entry(clip, folder, key, size) for clip, key, entry in zip(clips, keys, cached, strict=True)
        ]
    for clip, key, entry in zip(clips, keys, cached, strict=True):
        if key in warnings and clip is first[key]:
            say(f"warning: {warnings[key]}")
        elif key in warnings and entry is None:
            say(f"warning: skipped {clip.name}: its content is that of {first[key].name}")
    readable = [entry for entry in cached if entry is not None]
    _check_tags(clips, readable)
    return readable


def _refuse_changed(clips: Sequence[Clip], folder: Path) -> None:
    """Refuse files that are not those of the run, before anything is decoded under their digests."""
    digests = FileDigests(folder / MEMORY)
    for clip in clips:
        refuse_changed(clip, digests)
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


def _check_disk(job: _Job, files: Files) -> None:
    """Refuse to start if the frames do not fit on the disk."""
    clips = [clip for group in files for clip in group.values()]
    with ThreadPoolExecutor(job.workers) as executor:
        counts = list(executor.map(_estimate, clips))
    frames = sum(counts if job.max_frames is None else (min(count, job.max_frames) for count in counts))
    needed, free = frames * job.size**2 * 3 + RESERVE, shutil.disk_usage(job.folder).free
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
        pending = set(futures)
        try:
            while pending:
                finished, pending = wait(pending, timeout=SECONDS_BETWEEN_LOOKS, return_when=FIRST_COMPLETED)
                for future in finished:
                    warnings |= future.result()
                    advance(len(futures[future]))
                raise_if_stopped("decoding")
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
            for frame in _frames(list(clips.values()), threads=max(1, cores() // job.workers)):
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


def _frames(clips: list[Clip], *, threads: int) -> Iterator[VideoFrame]:
    """Frames of one clip, or of the part of a file that holds several clips."""
    if len(clips) == 1:
        return clip_frames(clips[0], threads=threads)
    ends = [clip.end for clip in clips if clip.end is not None]
    last = max(ends) if len(ends) == len(clips) else None
    return decode(stored(clips[0]), start=min(clip.start for clip in clips), end=last, threads=threads)


def _check_tags(clips: Sequence[Clip], readable: Sequence[CachedClip]) -> None:
    lost = len(clips) - len(readable)
    if lost:
        say(f"warning: {lost} of {len(clips)} clips cannot be read and are left out")
    if not readable:
        raise ColocamError("no clip can be read: see the warnings above")
    left = {entry.clip.tag for entry in readable if entry.clip.split == "train"}
    if empty := sorted({clip.tag for clip in clips if clip.split == "train"} - left):
        raise ColocamError(f"the tag {empty[0]!r} has no readable training video: see the warnings above")
