"""From a video file to boxes: the model's use after training."""

from colocam.inference.localizer import Localizer
from colocam.inference.sinks import AnnotatedVideo, LocalizationTable

__all__ = ["AnnotatedVideo", "LocalizationTable", "Localizer"]
