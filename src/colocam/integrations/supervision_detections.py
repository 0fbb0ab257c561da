"""supervision: the boxes of a frame as ``supervision.Detections``, which its annotators, zones and metrics take.

``confidence`` is the score of the box (1 for one without a score, which a person drew), ``class_id`` the index among
the classes, ``data["class_name"]`` the class.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from colocam.errors import ArgumentError, suggest
from colocam.labels.labeled_videos import LabelSet, read_videos
from colocam.types import Localization
from colocam.utils.extras import not_installed

if TYPE_CHECKING:
    from supervision import Detections


def frame_detections(found: Iterable[Localization], tags: Sequence[str] | None = None) -> "Detections":
    """The objects of one frame; those without a box are left out.

    ``mask`` and ``tracker_id`` are None unless every object has a mask, or a track.

    Args:
        found: localizations of one frame: several with ``instances=True``, otherwise one.
        tags: the classes that ``class_id`` counts, e.g. ``localizer.tags``; None: those of this frame, sorted.
    """
    seen = [(one.box, one.score, one.tag, one.mask, one.track) for one in found if one.box is not None]
    return _detections(seen, sorted({tag for _, _, tag, _, _ in seen}) if tags is None else tags)


def table_detections(
    table: str | Path, video: str | Path | None = None, tags: Sequence[str] | None = None
) -> "Iterator[tuple[int, Detections]]":
    """The objects of each frame that a localization table lists: (index of the frame from 0, its detections).

    Every box has a track, as in the exported labels. A frame without an object has empty detections.

    >>> for frame, detections in table_detections("boxes/new.csv"):    # doctest: +SKIP
    ...     print(frame, detections.xyxy)

    Args:
        table: CSV or parquet of ``colocam localize``.
        video: its video; None: what ``<table>.video.json`` describes.
        tags: the classes that ``class_id`` counts; None: those of the table, sorted.
    """
    (labeled,) = read_videos([Path(table)], [] if video is None else [Path(video)])
    rows = labeled.rows
    classes = LabelSet([labeled]).classes if tags is None else tags
    scores = np.nan_to_num(rows.score, nan=1.0).tolist()
    for frame, own in labeled.objects_of.items():
        objects = [
            (rows.box[row], scores[row], rows.tag[row], labeled.mask(row), labeled.track_of(row).id) for row in own
        ]
        yield frame, _detections(objects, classes)


def _detections(objects: Sequence[tuple[Any, ...]], tags: Sequence[str]) -> "Detections":
    """Objects as box, score, class, mask or None, track or None."""
    try:
        from supervision import Detections  # noqa: PLC0415 - takes a second
    except ModuleNotFoundError as error:
        raise not_installed(error, __name__, "supervision") from error
    boxes, scores, names, masks, tracks = zip(*objects, strict=True) if objects else ((),) * 5
    if unknown := [name for name in names if name not in tags]:
        raise ArgumentError("tags", f"must hold every class, got none for {unknown[0]}{suggest(unknown[0], tags)}")
    return Detections(
        xyxy=np.array(boxes, np.float32).reshape(-1, 4),
        mask=np.stack(masks) if objects and all(mask is not None for mask in masks) else None,
        confidence=np.array(scores, np.float32),
        class_id=np.array([tags.index(name) for name in names], np.int64),
        tracker_id=None if None in tracks else np.array(tracks, np.int64),
        data={"class_name": np.array(names, dtype=str)},
    )
