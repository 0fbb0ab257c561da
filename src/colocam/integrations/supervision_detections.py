"""supervision: the boxes of a frame as ``supervision.Detections``, which its annotators, zones and metrics take.

``confidence`` is the score of the box (1 for one without a score, which a person drew), ``class_id`` the index among
the classes, ``data["class_name"]`` the class.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from colocam.boxes import rle
from colocam.errors import ArgumentError, suggest
from colocam.integrations import missing
from colocam.labels.labelled_videos import LabelSet, read_videos
from colocam.types import Localization

if TYPE_CHECKING:
    from supervision import Detections


def frame_detections(found: Iterable[Localization], tags: Sequence[str] | None = None) -> "Detections":
    """The objects of one frame; those without a box are left out.

    ``mask`` and ``tracker_id`` are None unless every object has a mask, or a track.

    Args:
        found: localizations of one frame: several with ``instances=True``, otherwise one.
        tags: the classes that ``class_id`` counts, e.g. ``localizer.tags``; None: those of this frame, sorted.
    """
    seen = [(one, one.box) for one in found if one.box is not None]
    names = [one.tag for one, _ in seen]
    masks = [one.mask for one, _ in seen if one.mask is not None]
    tracks = [one.track for one, _ in seen if one.track is not None]
    return _detections(
        np.array([box for _, box in seen]),
        [one.score for one, _ in seen],
        names,
        sorted(set(names)) if tags is None else tags,
        np.stack(masks) if masks and len(masks) == len(seen) else None,
        tracks if len(tracks) == len(seen) else None,
    )


def table_detections(
    table: str | Path, video: str | Path | None = None, tags: Sequence[str] | None = None
) -> "Iterator[tuple[int, Detections]]":
    """The objects of each frame that a localisation table lists: (index of the frame from 0, its detections).

    Every box has a track, as in the exported labels. A frame without an object has empty detections.

    >>> for frame, detections in table_detections("boxes/new.csv"):    # doctest: +SKIP
    ...     print(frame, detections.xyxy)

    Args:
        table: CSV or parquet of ``colocam localize``.
        video: its video; None: what ``<table>.video.json`` describes.
        tags: the classes that ``class_id`` counts; None: those of the table, sorted.
    """
    (labelled,) = read_videos([Path(table)], [] if video is None else [Path(video)])
    rows, size = labelled.rows, (labelled.source.height, labelled.source.width)
    classes = LabelSet([labelled]).classes if tags is None else tags
    for frame, own in labelled.objects_of.items():
        masks = [rle.decode(rows.mask[row], *size) for row in own if rows.mask[row]]
        yield (
            frame,
            _detections(
                rows.box[own],
                np.nan_to_num(rows.score[own], nan=1.0).tolist(),
                [rows.tag[row] for row in own],
                classes,
                np.stack(masks) if masks and len(masks) == len(own) else None,
                [labelled.track_of(row).id for row in own],
            ),
        )


def _detections(
    boxes: np.ndarray,
    scores: list[float],
    names: list[str],
    tags: Sequence[str],
    masks: np.ndarray | None,
    tracks: list[int] | None,
) -> "Detections":
    try:
        from supervision import Detections  # noqa: PLC0415 - takes a second
    except ModuleNotFoundError as error:
        raise missing(error, "supervision") from error
    if unknown := [name for name in names if name not in tags]:
        raise ArgumentError("tags", f"must hold every class, got none for {unknown[0]}{suggest(unknown[0], tags)}")
    return Detections(
        xyxy=boxes.reshape(-1, 4).astype(np.float32),
        mask=masks,
        confidence=np.array(scores, np.float32),
        class_id=np.array([tags.index(name) for name in names], np.int64),
        tracker_id=None if tracks is None else np.array(tracks, np.int64),
        data={"class_name": np.array(names, dtype=str)},
    )
