"""Videos and their tags: catalogue, true boxes, index of data sets, frame cache, samplers and batches."""

from colocam.data.catalogue import Catalogue, read_catalogue
from colocam.data.datasets import DATASETS, Dataset, index_dataset
from colocam.data.frame_cache import CachedClip, cache_frames
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
