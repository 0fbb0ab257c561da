"""From a video file to boxes: the model's use after training."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from colocam.inference.localizer import Localizer
    from colocam.inference.sinks import AnnotatedVideo, LocalizationTable

__all__ = ["AnnotatedVideo", "LocalizationTable", "Localizer"]

_HOME = {"AnnotatedVideo": "sinks", "LocalizationTable": "sinks", "Localizer": "localizer"}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    """Import a name when it is first used: boxes of frames in memory need no writer of videos."""
    if name not in _HOME:
        raise AttributeError(f"module 'colocam.inference' has no attribute {name!r}")
    return getattr(import_module(f"colocam.inference.{_HOME[name]}"), name)
