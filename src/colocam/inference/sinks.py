"""Write an annotated video: the heat-map, the boxes and the labels drawn on each frame."""

from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

from colocam.types import Localization
from colocam.video.drawing import draw_objects
from colocam.video.reader import VideoInfo
from colocam.video.writer import VideoWriter


class AnnotatedVideo:
    """An mp4 that browsers play, with the heat-map, the box and the label on each frame; a context manager.

    Frames keep the presentation times of their localizations.
    """

    def __init__(self, path: Path, info: VideoInfo) -> None:
        self._writer = VideoWriter(path, info.width, info.height, info.fps, quick=True)

    def __enter__(self) -> Self:
        self._writer.__enter__()
        return self

    def write(self, image: npt.NDArray[np.uint8], localization: Localization, *others: Localization) -> None:
        """Append ``image`` (H, W, 3), RGB at the video's own size, with what was found in this frame drawn on it."""
        self._writer.write(draw_objects(image, localization, *others), localization.pts)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._writer.__exit__(kind, error, trace)
