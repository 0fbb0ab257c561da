"""Inference: from a video file to boxes, with a trained model."""

from typing import TYPE_CHECKING

from colocam.utils.extras import lazy_names

if TYPE_CHECKING:
    from colocam.inference.localize import localize_file, localize_videos
    from colocam.inference.localizer import Localizer
    from colocam.labels.table import LocalizationTable
    from colocam.video.writer import AnnotatedVideo

__all__ = ["AnnotatedVideo", "LocalizationTable", "Localizer", "localize_file", "localize_videos"]

__getattr__, __dir__ = lazy_names(  # frames in memory need no video writer
    __name__,
    {
        "AnnotatedVideo": "colocam.video.writer",
        "LocalizationTable": "colocam.labels.table",
        "Localizer": "colocam.inference.localizer",
        "localize_file": "colocam.inference.localize",
        "localize_videos": "colocam.inference.localize",
    },
)
