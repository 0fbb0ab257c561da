"""What one command has to do: which videos, and what the files made of each are called."""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colocam.errors import ColocamError
from colocam.video.image_files import IMAGE_ENDINGS, NOT_VIDEO_ENDINGS, images_of, natural_key
from colocam.video.input import VideoInput


@dataclass(frozen=True, slots=True)
class Job:
    """One video and where its results go.

    Attributes:
        source: the video, maybe a folder of pictures.
        target: folder and name of the results, without an ending.
    """

    source: VideoInput
    target: Path

    def file(self, ending: str) -> Path:
        """A file made of this video."""
        return self.target.with_name(f"{self.target.name}.{ending}")


def find_jobs(videos: Sequence[str | Path], out: Path, *, format: str | None = None) -> list[Job]:  # noqa: A002
    """The videos that were named, in order; of a folder all in it and below it, with its own folders in ``out``.

    A folder that holds pictures and no video file is a video itself. Videos that differ in their ending alone keep it
    in the names of their results.
    """
    jobs: list[Job] = []
    for video in videos:
        source = VideoInput(str(video), format)
        if source.path is None or not source.path.is_dir():
            jobs.append(Job(source, out / source.stem))
            continue
        found = [VideoInput(str(path), format) for path in _videos_below(source.path, out)]
        if not found:
            raise ColocamError(f"{source.path}: no video in it: name the videos, or a folder that holds them")
        jobs += [Job(one, out / Path(one.address).relative_to(source.path).parent / one.stem) for one in found]
    often = Counter(job.target for job in jobs)
    jobs = [_with_its_ending(job) if often[job.target] > 1 else job for job in jobs]
    twice = [target for target, count in Counter(job.target for job in jobs).items() if count > 1]
    if twice:
        both = [job.source.name for job in jobs if job.target == twice[0]]
        raise ColocamError(f"{both[0]} and {both[1]} have one name: give the folder that holds both, or two commands")
    return jobs


def refuse_overwriting(jobs: Sequence[Job], ending: str) -> None:
    """Stop before a result takes the place of a video, or lies among pictures, which would then be none any more."""
    videos = {job.source.path.resolve() for job in jobs if job.source.path is not None}
    for job in jobs:
        result = job.file(ending).resolve()
        if result in videos:
            raise ColocamError(f"{job.file(ending)} would overwrite the video itself: choose another output folder")
        if result.parent in videos:
            raise ColocamError(f"{job.file(ending)} would lie among the pictures: choose another output folder")


def fingerprint(run: Path, source: VideoInput, settings: dict[str, Any]) -> str | None:
    """A digest of model, video and settings, by which finished work is known again; None for what is not stored."""
    if not source.is_stored or source.path is None:
        return None
    model = sorted(run.glob("model.*")) if run.is_dir() else [run]
    video = images_of(source.path) if source.path.is_dir() else [source.path]
    facts = [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in (*model, *video)]
    text = json.dumps([str(source.path.resolve()), facts, settings], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def _with_its_ending(job: Job) -> Job:
    return job if job.source.path is None else Job(job.source, job.target.with_name(job.source.path.name))


def _videos_below(folder: Path, out: Path) -> list[Path]:
    """Files that may be videos and folders of pictures, in natural order.

    Hidden ones and earlier results in ``out`` are none, nor are pictures beside videos.
    """
    inside = out.resolve()
    found: list[Path] = []
    for place, folders, files in os.walk(folder):
        here = Path(place)
        folders[:] = [one for one in folders if not one.startswith(".") and (here / one).resolve() != inside]
        endings = {name: Path(name).suffix.lower() for name in files if not name.startswith(".")}
        videos = [here / name for name, ending in endings.items() if ending not in NOT_VIDEO_ENDINGS]
        found += videos or ([here] if IMAGE_ENDINGS.intersection(endings.values()) else [])
    return sorted(found, key=lambda path: natural_key(str(path.relative_to(folder))))
