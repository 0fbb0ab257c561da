"""Videos and their tags: catalogue, decoding, the frame cache, frame samplers; ground truth for the evaluation."""

from colocam.data.cache import cache_frames
from colocam.data.catalogue import Catalogue, read_catalogue
from colocam.data.frames import clip_frames
from colocam.data.store import CachedClip
from colocam.data.truth import Truth, read_truth
from colocam.data.video import VideoFrame, VideoInfo, VideoWriter, decode, probe

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
