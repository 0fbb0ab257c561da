"""The validation split, which the archives lack: some of the training videos of each class."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from colocam.data.youtube_objects.shots import CLASSES, Notes, Shot, Version

VAL_VIDEOS: dict[Version, int] = {"1.0": 5, "2.2": 3}
"""Validation videos of each class in the literature."""


def sample_validation(shots: Sequence[Shot], count: int, seed: int, notes: Notes) -> list[Shot]:
    """Put ``count`` random training videos of each class into val, those with boxes first.

    Each class is sampled by itself, so that its videos do not depend on the other classes. At least one video of a
    class stays in train.
    """
    labelled: dict[str, dict[str, bool]] = defaultdict(dict)
    for shot in shots:
        if shot.split == "train":
            labelled[shot.tag][shot.video] = labelled[shot.tag].get(shot.video, False) or bool(shot.labels)
    chosen: set[str] = set()
    for tag, videos in labelled.items():
        generator = np.random.default_rng([seed, CLASSES.index(tag)])
        names = [sorted(videos)[index] for index in generator.permutation(len(videos)).tolist()]
        names.sort(key=lambda name: not videos[name])  # a stable sort keeps the random order within each half
        if len(names) <= count:
            notes.add(f"classes with too few training videos for {count} of validation", f"{tag}, {len(names)}")
        chosen.update(names[: min(count, len(names) - 1)])
    return _into_val(shots, chosen)


def listed_validation(shots: Sequence[Shot], videos: Iterable[tuple[str, int]], notes: Notes) -> list[Shot]:
    """Put the training videos (class, number) into val."""
    numbers = {shot.video: (shot.tag, int(shot.video.rpartition("/")[2].removeprefix("video-"))) for shot in shots}
    wanted = set(videos)
    chosen = {video for video, number in numbers.items() if number in wanted}
    for tag, number in sorted(wanted - set(numbers.values())):
        notes.add("videos of the validation list that are not there", f"{tag}, {number}")
    for video in sorted({shot.video for shot in shots if shot.split == "test"} & chosen):
        notes.add("videos of the validation list that are test videos and stay in test", video)
    return _into_val(shots, chosen)


def _into_val(shots: Sequence[Shot], videos: set[str]) -> list[Shot]:
    return [replace(s, split="val") if s.split == "train" and s.video in videos else s for s in shots]
