"""Videos and their tags: catalogue, decoding, the frame cache, frame samplers; ground truth for the evaluation."""

from colocam.data.catalogue import Catalogue, read_catalogue
from colocam.data.truth import Truth, read_truth
from colocam.data.video import VideoFrame, VideoInfo, VideoWriter, decode, probe

__all__ = [
    "Catalogue",
    "Truth",
    "VideoFrame",
    "VideoInfo",
    "VideoWriter",
    "decode",
    "probe",
    "read_catalogue",
    "read_truth",
]
