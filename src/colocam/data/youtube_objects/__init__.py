"""YouTube-Objects v1.0 and v2.2: the archives as distributed, and frames in folders with the literature's lists."""

from colocam.data.youtube_objects.archive import PUBLISHED, read_archive
from colocam.data.youtube_objects.shots import CLASSES

__all__ = ["CLASSES", "PUBLISHED", "read_archive"]
