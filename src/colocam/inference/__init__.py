"""From a video file to boxes: the use of a trained model."""

from typing import TYPE_CHECKING

from colocam.utils.lazy import lazy_names

if TYPE_CHECKING:
    from colocam.inference.localizer import Localizer
    from colocam.inference.sinks import AnnotatedVideo
    from colocam.inference.table import LocalizationTable

__all__ = ["AnnotatedVideo", "LocalizationTable", "Localizer"]

__getattr__, __dir__ = lazy_names(  # boxes of frames in memory need no writer of videos
    __name__,
    {
        "AnnotatedVideo": "colocam.inference.sinks",
        "LocalizationTable": "colocam.inference.table",
        "Localizer": "colocam.inference.localizer",
    },
)
