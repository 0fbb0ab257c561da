"""How many shots, frames, boxes and videos there are, beside those of the literature."""

from dataclasses import dataclass

from colocam.data.index import Index
from colocam.data.youtube_objects.shots import Version


@dataclass(frozen=True, slots=True)
class Counts:
    """Sizes of the splits; train is counted in shots, val and test in labelled frames and their boxes."""

    train_shots: int
    train_videos: int
    val_frames: int
    val_boxes: int
    val_videos: int
    test_frames: int
    test_boxes: int
    test_videos: int


PUBLISHED: dict[Version, Counts] = {
    "1.0": Counts(2768, 78, 325, 347, 50, 346, 396, 27),
    "2.2": Counts(1289, 76, 1177, 1177, 30, 1781, 2667, 49),
}


def count(index: Index) -> Counts:
    """Count what an index holds."""
    frames, boxes, videos, shots = ({"train": 0, "val": 0, "test": 0} for _ in range(4))
    for split in shots:
        clips = [clip for clip in index.clips if clip.split == split]
        labelled = [boxes for clip in clips for boxes in index.truth.frames.get(clip.name, {}).values()]
        shots[split], videos[split] = len(clips), len({clip.video for clip in clips})
        frames[split], boxes[split] = len(labelled), sum(map(len, labelled))
    return Counts(
        train_shots=shots["train"],
        train_videos=videos["train"],
        val_frames=frames["val"],
        val_boxes=boxes["val"],
        val_videos=videos["val"],
        test_frames=frames["test"],
        test_boxes=boxes["test"],
        test_videos=videos["test"],
    )
