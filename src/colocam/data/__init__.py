"""Videos and their tags: catalogue, true boxes, index of data sets, frame cache, samplers and batches."""

from typing import TYPE_CHECKING

from colocam.utils.extras import lazy_names

if TYPE_CHECKING:
    from colocam.data.cache_entry import CachedClip
    from colocam.data.catalogue import Catalogue, read_catalogue
    from colocam.data.datasets import DATASETS, Dataset, index_dataset
    from colocam.data.frame_cache import cache_frames
    from colocam.data.index import Index
    from colocam.data.truth import Truth, read_truth

__all__ = [
    "DATASETS",
    "CachedClip",
    "Catalogue",
    "Dataset",
    "Index",
    "Truth",
    "cache_frames",
    "index_dataset",
    "read_catalogue",
    "read_truth",
]

__getattr__, __dir__ = lazy_names(  # computing on frames in memory needs no FFmpeg
    __name__,
    {
        "CachedClip": "colocam.data.cache_entry",
        "Catalogue": "colocam.data.catalogue",
        "DATASETS": "colocam.data.datasets",
        "Dataset": "colocam.data.datasets",
        "Index": "colocam.data.index",
        "Truth": "colocam.data.truth",
        "cache_frames": "colocam.data.frame_cache",
        "index_dataset": "colocam.data.datasets",
        "read_catalogue": "colocam.data.catalogue",
        "read_truth": "colocam.data.truth",
    },
)
