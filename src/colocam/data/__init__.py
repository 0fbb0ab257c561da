"""Videos and their tags: catalogue, decoding, the frame cache, frame samplers; ground truth for the evaluation."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from colocam.data.cache import cache_frames
    from colocam.data.catalogue import Catalogue, read_catalogue
    from colocam.data.frames import clip_frames
    from colocam.data.store import CachedClip
    from colocam.data.truth import Truth, read_truth
    from colocam.data.video import VideoFrame, VideoInfo, decode, probe
    from colocam.data.writer import VideoWriter

__all__ = [
    "CachedClip",
    "Catalogue",
    "Truth",
    "VideoFrame",
    "VideoInfo",
    "VideoWriter",
    "cache_frames",
    "clip_frames",
    "decode",
    "probe",
    "read_catalogue",
    "read_truth",
]

_HOME = {
    "CachedClip": "store",
    "Catalogue": "catalogue",
    "Truth": "truth",
    "VideoFrame": "video",
    "VideoInfo": "video",
    "VideoWriter": "writer",
    "cache_frames": "cache",
    "clip_frames": "frames",
    "decode": "video",
    "probe": "video",
    "read_catalogue": "catalogue",
    "read_truth": "truth",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    """Import a name when it is first used: who computes on frames in memory needs no FFmpeg."""
    if name not in _HOME:
        raise AttributeError(f"module 'colocam.data' has no attribute {name!r}")
    return getattr(import_module(f"colocam.data.{_HOME[name]}"), name)
