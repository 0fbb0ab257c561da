"""Frames of video files and image folders, by presentation time; knows neither data sets nor models."""

from typing import TYPE_CHECKING

from colocam.utils.extras import lazy_names

if TYPE_CHECKING:
    from colocam.video.fence import decode, probe
    from colocam.video.reader import VideoInfo
    from colocam.video.writer import VideoWriter

__all__ = ["VideoInfo", "VideoWriter", "decode", "probe"]

__getattr__, __dir__ = lazy_names(  # computing on frames in memory needs no FFmpeg
    __name__,
    {
        "VideoInfo": "colocam.video.reader",
        "VideoWriter": "colocam.video.writer",
        "decode": "colocam.video.fence",
        "probe": "colocam.video.fence",
    },
)
