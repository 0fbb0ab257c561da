"""The jobs of one command: which videos, how their result files are called, and which results exist already."""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from colocam.errors import ColocamError
from colocam.inference.result_files import without_results
from colocam.video.image_files import IMAGE_ENDINGS, NOT_VIDEO_ENDINGS, images_of, natural_key
from colocam.video.input import VideoInput

BLOCK, BLOCKS = 2**18, 16
"""A video is known by its size and the content of 16 blocks of 256 KiB, evenly spread from its first to its last byte.

A video of at most 4 MiB is read whole. Reading all of a long film would take as long as decoding a part of it.
"""


@dataclass(frozen=True, slots=True)
class Job:
    """One video and where its results go.

    Attributes:
        source: the video, possibly a folder of images.
        target: folder and name of the results, without an ending.
    """

    source: VideoInput
    target: Path

    def file(self, ending: str) -> Path:
        """Path of a result file."""
        return self.target.with_name(f"{self.target.name}.{ending}")


def find_jobs(videos: Sequence[str | Path], out: Path, *, format: str | None = None) -> list[Job]:  # noqa: A002
    """Jobs for the named videos, in order; a folder stands for all videos in and below it.

    Results keep the folders' structure in ``out``. A folder that holds images and no video file is a video itself.
    Videos whose names differ only in their ending keep it in the names of their results.
    """
    jobs: list[Job] = []
    for video in videos:
        source = VideoInput(str(video), format)
        if source.path is None or not source.is_folder:
            jobs.append(Job(source, out / source.stem))
            continue
        found = [VideoInput(str(path), format, must_be_stored=True) for path in _videos_below(source.path, out)]
        if not found:
            raise ColocamError(f"{source.path}: no video in it: name the videos, or a folder that holds them")
        jobs += [Job(one, out / Path(one.address).relative_to(source.path).parent / one.stem) for one in found]
    often = Counter(job.target for job in jobs)
    jobs = [_with_its_ending(job) if often[job.target] > 1 else job for job in jobs]
    twice = [target for target, count in Counter(job.target for job in jobs).items() if count > 1]
    if twice:
        both = [job.source.name for job in jobs if job.target == twice[0]]
        raise ColocamError(
            f"{both[0]} and {both[1]} have the same name: give the folder that holds both, or use two commands"
        )
    return jobs


def refuse_overwriting(jobs: Sequence[Job], *endings: str) -> None:
    """Refuse results that would overwrite a video of this command, or be written among the images of one."""
    videos = {os.path.realpath(job.source.path) for job in jobs if job.source.path is not None}
    for job in jobs:
        folder = os.path.realpath(job.target.parent)
        for file in (job.file(ending) for ending in endings):
            if os.path.join(folder, file.name) in videos:  # noqa: PTH118 - realpath gives text
                raise ColocamError(f"{file} would overwrite the video itself: choose another output folder")
            if folder in videos and file.suffix == ".mp4":  # a folder with a video in it is no folder of images
                raise ColocamError(f"{file} would be among the images: choose another output folder")


def fingerprint(run: Path, source: VideoInput, settings: dict[str, Any], segmenter: Sequence[Path] = ()) -> str | None:
    """Digest of the content of model, video and segmenter and of the settings; None for a source that is not stored.

    It holds neither paths nor times, so that a moved folder is not processed again and a replaced film is.
    """
    if not source.is_stored or source.path is None:
        return None
    model = sorted(run.glob("model.*")) if run.is_dir() else [run]
    video = images_of(source.path) if source.path.is_dir() else [source.path]
    contents = [[_whole_digest(path) for path in model], [_digest(path, whole=False) for path in video]]
    if segmenter:
        contents.append([_whole_digest(path) for path in segmenter])
    text = json.dumps([contents, settings], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def _whole_digest(path: Path) -> str:
    """:func:`_digest` of a whole file, which is read again only if it changed: models are the same for many videos."""
    state = path.stat()
    return _digest_of_state(path, state.st_size, state.st_mtime_ns, state.st_ino)


@lru_cache(maxsize=64)
def _digest_of_state(path: Path, *_state: int) -> str:
    return _digest(path, whole=True)


def _digest(path: Path, *, whole: bool) -> str:
    """SHA-256 of a file's size and content, or of blocks of it, see :data:`BLOCKS`."""
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        if whole or size <= BLOCK * BLOCKS:
            while data := file.read(BLOCK):
                digest.update(data)
        else:
            for number in range(BLOCKS):
                file.seek(number * (size - BLOCK) // (BLOCKS - 1))
                digest.update(file.read(BLOCK))
    return digest.hexdigest()


def _with_its_ending(job: Job) -> Job:
    return job if job.source.path is None else Job(job.source, job.target.with_name(job.source.path.name))


def _videos_below(folder: Path, out: Path) -> list[Path]:
    """Files that may be videos, and folders of images, in natural order.

    Without hidden files, results of this or another command, and images beside videos.
    """
    inside = out.resolve()
    found: list[Path] = []
    for parent, folders, files in os.walk(folder):
        here = Path(parent)
        folders[:] = [one for one in folders if not one.startswith(".") and (here / one).resolve() != inside]
        visible = without_results([here / name for name in files if not name.startswith(".")])
        endings = {path.name: path.suffix.lower() for path in visible}
        videos = [here / name for name, ending in endings.items() if ending not in NOT_VIDEO_ENDINGS]
        found += videos or ([here] if IMAGE_ENDINGS.intersection(endings.values()) else [])
    return sorted(found, key=lambda path: natural_key(str(path.relative_to(folder))))
