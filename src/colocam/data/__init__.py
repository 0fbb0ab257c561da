"""Videos and their tags: catalogue, true boxes, frame cache, samplers and batches."""

from typing import TYPE_CHECKING

from colocam.utils.lazy import lazy_names

if TYPE_CHECKING:
    from colocam.data.cache_entry import CachedClip
    from colocam.data.catalogue import Catalogue, read_catalogue
    from colocam.data.clip_frames import clip_frames
    from colocam.data.frame_cache import cache_frames
    from colocam.data.truth import Truth, read_truth

__all__ = ["CachedClip", "Catalogue", "Truth", "cache_frames", "clip_frames", "read_catalogue", "read_truth"]

__getattr__, __dir__ = lazy_names(  # computing on frames in memory needs no FFmpeg
    __name__,
    {
        "CachedClip": "colocam.data.cache_entry",
        "Catalogue": "colocam.data.catalogue",
        "Truth": "colocam.data.truth",
        "cache_frames": "colocam.data.frame_cache",
        "clip_frames": "colocam.data.clip_frames",
        "read_catalogue": "colocam.data.catalogue",
        "read_truth": "colocam.data.truth",
    },
)
