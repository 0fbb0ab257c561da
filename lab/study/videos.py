"""How many videos does a class need? CorLoc, class and presence against the number of tagged videos of each class.

The paper has no such curve. Of each class, n of its clips that are not for the test are chosen at random, those of a
smaller n among them; a clip is a video, or a shot of one. A fifth of their videos, at least one, is held out, as
``colocam train`` does it. The other clips are not seen at all, in neither stage. Test clips are always the same.
"""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import zip_longest
from math import inf
from pathlib import Path

import numpy as np

from colocam.config.options import Options
from colocam.data.catalogue import Catalogue
from colocam.data.truth import Index, Truth, write_index
from colocam.evaluation.metrics.protocols import PUBLISHED_PROTOCOL
from colocam.evaluation.result import plain
from colocam.evaluation.run_evaluation import evaluate
from colocam.types import Clip
from lab.study.cells import Cell, Result, tidy
from lab.study.figures import Lines, Series
from lab.study.recipe import SHOWN, Findings, Results, Study
from lab.study.tables import Measured, Table
from lab.study.workplace import Lab

COUNTS = (2, 5, 10, 20, inf)
"""Tagged clips of each class; ``inf`` is all of them, with the splits of the data."""
METHOD = "colocam"


def chosen_clips(catalogue: Catalogue, count: int, val_fraction: float, seed: int) -> tuple[Clip, ...]:
    """``count`` clips of each tag, split into training and validation by video, and all clips for the test.

    They come from as many videos as possible: the second shot of a video is taken after the first of every other one.
    A tag with fewer clips keeps all of them; one video of several tags is in one split.
    """
    random = np.random.default_rng(seed)
    kept: set[str] = set()
    held_out: set[str] = set()
    for tag in catalogue.tags:
        shots: dict[str, list[str]] = {}
        for clip in catalogue.clips:
            if clip.tag == tag and clip.split != "test":
                shots.setdefault(clip.video, []).append(clip.name)
        videos = random.permutation(sorted(shots)).tolist()
        own = [random.permutation(shots[video]).tolist() for video in videos]
        in_turn = [name for names in zip_longest(*own) for name in names if name is not None]
        kept |= set(in_turn[:count])
        used = videos[:count]
        held_out |= set(used[: min(max(round(val_fraction * len(used)), 1), len(used) - 1)])
    return tuple(
        clip if clip.split == "test" else replace(clip, split="val" if clip.video in held_out else "train")
        for clip in catalogue.clips
        if clip.split == "test" or clip.name in kept
    )


@dataclass(frozen=True, slots=True)
class FewVideos(Cell):
    """Train both stages with some clips of each class, and evaluate.

    ``{"corloc": {protocol: …}, "classification": percent, "presence": {"roc_auc": …, "empty_ap": …} or null}``.

    Attributes:
        clips: of each class; ``inf``: all.
    """

    clips: float

    @property
    def label(self) -> str:
        """The number of clips."""
        return f"CoLo-CAM, {_name(self.clips)}"

    def identity(self, lab: Lab, seed: int) -> Result:
        """The number of clips, the configuration and the data."""
        clips = None if self.clips == inf else self.clips
        return {"videos": clips, **_tags_alone(lab).identity(lab.config((), seed, (METHOD,)))}

    def run(self, lab: Lab, seed: int, folder: Path) -> Result:
        """Train and evaluate on the test frames; ``folder`` becomes a run folder."""
        config, manifest = lab.config((), seed, (METHOD,)), lab.data.manifest
        if self.clips != inf:
            clips = chosen_clips(lab.catalogue, int(self.clips), config.frames.val_fraction, seed)
            index = lab.work / "videos" / f"{self.clips:g}-seed-{seed}-{lab.data.digest}"
            manifest, _ = write_index(index, Index(clips, Truth({})))
        _tags_alone(lab).train(config, folder, manifest=manifest)
        found = evaluate(folder, lab.data.truth, cams=(), options=Options(lab.device))
        presence = found.objects and found.objects.presence
        tidy(folder, METHOD, model=False)
        return {
            "corloc": plain(found.methods[METHOD]),
            "data": plain(found.data),
            "classification": found.classification and found.classification.accuracy,
            "presence": presence and {"roc_auc": presence.roc_auc, "empty_ap": presence.empty_ap},
        }


def _tags_alone(lab: Lab) -> Lab:
    """The conditions without boxes of validation videos: the videos that are held out here need not have any."""
    return replace(lab, val_boxes=False)


def _name(clips: float) -> str:
    return "all clips" if clips == inf else f"{clips:g} clips"


def _clips(lab: Lab) -> list[int]:
    """Number of clips of each tag that are not for the test."""
    return list(Counter(clip.tag for clip in lab.catalogue.clips if clip.split != "test").values())


def _possible(lab: Lab) -> list[float]:
    """The numbers that leave some clips out, and all."""
    most = max(_clips(lab))
    return list(lab.few([count for count in COUNTS if count < most or count == inf])) or [inf]


def read(lab: Lab, results: Results) -> Findings:
    """A row and a point for each number of clips."""
    counts, there = _possible(lab), _clips(lab)
    rows = []
    for count in counts:
        cell = FewVideos(count)
        ours = [results.corloc(cell, protocol) for protocol in SHOWN]
        signs = [_percent(results.value(cell, "presence", name)) for name in ("roc_auc", "empty_ap")]
        rows.append((_name(count), *reversed(ours), results.value(cell, "classification"), *signs))
    title = (
        "In percent: CorLoc, mean over classes; right classes of test frames; presence with the tag given, area under "
        "the ROC curve and average precision of empty frames, where the test frames have some"
    )
    columns = ("clips of each class", *reversed(SHOWN), "class", "presence, ROC AUC", "presence, AP")
    places = tuple(sum(there) / len(there) if count == inf else float(count) for count in counts)
    names = (f"CorLoc, {SHOWN[1]}", f"CorLoc, {PUBLISHED_PROTOCOL}", "class", "presence, ROC AUC")
    series = tuple(Series(name, [row[place] for row in rows]) for place, name in enumerate(names, start=1))
    note = f"All clips: {min(there)}–{max(there)} of each class, {sum(there) / len(there):.1f} in the mean."
    return Findings(
        [Table("table", title, columns, tuple(rows))],
        [Lines("tagged clips of each class", "percent", places, series)],
        [note],
    )


def _percent(measured: Measured | None) -> Measured | None:
    return None if measured is None else Measured(tuple(100 * value for value in measured.values))


VIDEOS = Study(
    "videos",
    "How many tagged videos does a class need?",
    lambda lab: [FewVideos(count) for count in _possible(lab)],
    read,
    (
        "A clip is a video, or a shot of one; they come from as many videos as possible.",
        "A fifth of the chosen videos, at least one, is held out to choose epoch and threshold, by tags alone.",
        "A class with fewer clips keeps all of them; a number that no class exceeds is not run, because it is all.",
        "Commands with one of --values each can run side by side; without --values the command then reads all results.",
    ),
    values=COUNTS,
)
