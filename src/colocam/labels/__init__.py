"""Labels: the localization table, label formats that are written and read, corrections of people, frames to review."""

from colocam.labels.corrections import KINDS, Correction, Kind, read_corrections, write_corrections
from colocam.labels.formats import FORMATS, Format, export, readable, writable
from colocam.labels.imported_videos import FrameLabel, ImportedTrack, ImportedVideo, tracks_of_frames
from colocam.labels.importing import Imported, import_labels
from colocam.labels.labeled_videos import LabeledVideo, LabelSet, LeftOut, Options
from colocam.labels.review import Doubtful, rank, review_tables

__all__ = [
    "FORMATS",
    "KINDS",
    "Correction",
    "Doubtful",
    "Format",
    "FrameLabel",
    "Imported",
    "ImportedTrack",
    "ImportedVideo",
    "Kind",
    "LabelSet",
    "LabeledVideo",
    "LeftOut",
    "Options",
    "export",
    "import_labels",
    "rank",
    "read_corrections",
    "readable",
    "review_tables",
    "tracks_of_frames",
    "writable",
    "write_corrections",
]
