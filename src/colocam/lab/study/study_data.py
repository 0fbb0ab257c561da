"""What a study runs on: the demo world, or videos and true boxes that a user names."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from colocam.errors import ColocamError
from colocam.lab.world import make_world

DEMO = "demo"
WORLD_SEED = 1
"""The demo's own world; no setting was chosen on it."""


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
        """Changes with either table."""
        return hashlib.sha256(self.manifest.read_bytes() + b"\0" + self.truth.read_bytes()).hexdigest()[:16]


def data_name(data: str) -> str:
    """A name for the folder of results: ``demo``, or that of the folder or table."""
    path = Path(data)
    return DEMO if data == DEMO else path.resolve().name if path.is_dir() else path.resolve().parent.name or path.stem


def open_data(data: str, boxes: Path | None, folder: Path, *, smoke: bool) -> StudyData:
    """Find or make the data.

    Args:
        data: ``demo``; a folder with manifest.csv and truth.csv, as ``colocam index`` writes it; or a manifest.
        boxes: table of true boxes, where ``data`` is a manifest.
        folder: where the demo world is made.
        smoke: make a tiny world.
    """
    if data == DEMO:
        if boxes is not None:
            raise ColocamError("--boxes belong to --data MANIFEST: the demo world has its own")
        world = (
            make_world(folder, seed=WORLD_SEED, videos_per_class=(2, 1, 1), frames=6, size=(64, 48))
            if smoke
            else make_world(folder, seed=WORLD_SEED)
        )
        return StudyData(DEMO, world.manifest, world.truth)
    path = Path(data)
    if path.is_dir():
        manifest, truth = path / "manifest.csv", boxes or path / "truth.csv"
        remedy = "give the folder that 'colocam index' wrote, or --data MANIFEST --boxes TABLE"
    else:
        if boxes is None:
            raise ColocamError(f"--data {data}: a study needs true boxes: add --boxes TABLE")
        manifest, truth = path, boxes
        remedy = "check the path"
    for file in (manifest, truth):
        if not file.is_file():
            raise ColocamError(f"--data {data}: there is no {file}: {remedy}")
    return StudyData(data_name(data), manifest, truth)
