"""The data of a study: the demo world, or videos and true boxes of the user."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from colocam.errors import ColocamError
from colocam.demo.world import make_world

DEMO = "demo"
WORLD_SEED = 1
"""Seed of the demo's world; no setting was chosen on it."""


@dataclass(frozen=True, slots=True)
class StudyData:
    """Tagged videos with true boxes.

    Attributes:
        name: in the results.
        manifest: videos and tags, all that training reads.
        truth: true boxes, for the evaluation.
    """

    name: str
    manifest: Path
    truth: Path

    @property
    def digest(self) -> str:
        """Hash of both tables."""
        return hashlib.sha256(self.manifest.read_bytes() + b"\0" + self.truth.read_bytes()).hexdigest()[:16]


def data_name(data: str) -> str:
    """Name of the folder of results: ``demo``, or the name of the data's folder."""
    path = Path(data)
    return DEMO if data == DEMO else path.resolve().name if path.is_dir() else path.resolve().parent.name or path.stem


def open_data(data: str, boxes: Path | None, folder: Path, *, smoke: bool) -> StudyData:
    """Open the data, or make the demo world.

    Args:
        data: ``demo``; a folder with manifest.csv and truth.csv, as ``colocam index`` writes it; or a manifest.
        boxes: table of true boxes, where ``data`` is a manifest.
        folder: folder of the demo world.
        smoke: make a tiny world.
    """
    if data == DEMO:
        if boxes is not None:
            raise ColocamError("boxes are for a manifest: the demo world has its own")
        world = (
            make_world(folder, seed=WORLD_SEED, videos_per_class=(2, 1, 1), frames=6, size=(64, 48))
            if smoke
            else make_world(folder, seed=WORLD_SEED)
        )
        return StudyData(DEMO, world.manifest, world.truth)
    path = Path(data)
    if path.is_dir():
        manifest, truth = path / "manifest.csv", boxes or path / "truth.csv"
        remedy = "give a folder that 'colocam index' wrote, or a manifest and a table of boxes"
    else:
        if boxes is None:
            raise ColocamError(f"a study needs true boxes of {data}: give a table of boxes")
        manifest, truth = path, boxes
        remedy = "check the path"
    for file in (manifest, truth):
        if not file.is_file():
            raise ColocamError(f"data {data}: there is no {file}: {remedy}")
    return StudyData(data_name(data), manifest, truth)
