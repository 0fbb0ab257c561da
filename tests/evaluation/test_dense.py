"""``colocam evaluate RUN --dense MANIFEST``: films and images, numbers counted again from the tables of ``localize``."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from colocam.data.index import Index, write_index
from colocam.data.manifest import read_manifest
from colocam.data.truth import read_truth
from colocam.evaluation.dense import evaluate_dense
from colocam.evaluation.dense_result import read_dense
from colocam.inference.localize import localize_file
from colocam.report import write_report
from colocam.video.reader import decode
from colocam.video.writer import VideoWriter


@pytest.fixture
def run(trained, tmp_path):
    """A copy of the trained run that may be written to."""
    return shutil.copytree(trained, tmp_path / "run")


@pytest.fixture
def index(collection, tmp_path):
    """The collection's films as an index folder."""
    clips, _ = read_manifest(collection.manifest)
    write_index(tmp_path / "index", Index(tuple(clips), read_truth(collection.truth)))
    return tmp_path / "index"


def inclusive_iou(a, b):
    left, top, right, bottom = max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])
    common = max(right - left + 1, 0) * max(bottom - top + 1, 0)
    areas = [(box[2] - box[0] + 1) * (box[3] - box[1] + 1) for box in (a, b)]
    return common / (sum(areas) - common)


def table_of(path: Path):
    """Class and box of each frame of a localisation table."""
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [(row["tag"], tuple(float(row[name]) for name in ("x1", "y1", "x2", "y2"))) for row in rows]


@pytest.mark.parametrize("smooth", ["offline", "none"])
def test_films_give_what_localize_writes(run, index, collection, tmp_path, colocam, smooth):
    outcome = colocam("evaluate", run, "--dense", index, "--split", "test", "--smooth", smooth, "--device", "cpu")
    assert outcome.code == 0, outcome.err
    result = json.loads((run / "dense.json").read_text(encoding="utf-8"))
    assert [shot["name"] for shot in result["shots"]] == ["bus/test-0", "cat/test-0", "owl/test-0"]
    truth, hits, named = read_truth(collection.truth), [], []
    for shot in result["shots"]:
        for key, tag in (("without_tag", None), ("with_tag", shot["tag"])):
            film = collection.videos / f"{shot['name']}.mp4"
            written = localize_file(
                run, film, tmp_path / key, annotate=False, device="cpu", smooth=smooth, tag=tag
            )
            rows = table_of(written.table)
            overlaps = [inclusive_iou(rows[i][1], truth.boxes(shot["name"], i)[0]) for i in range(1, 5)]
            changes = [1 - inclusive_iou(rows[i][1], rows[i + 1][1]) for i in range(4)]
            assert shot[key]["corloc"] == pytest.approx(100 * sum(value >= 0.5 for value in overlaps) / 4)
            assert shot[key]["mean_iou"] == pytest.approx(sum(overlaps) / 4, abs=1e-3)
            assert shot[key]["jitter"] == pytest.approx(sum(changes) / 4, abs=1e-3)
            if tag is None:
                hits += [value >= 0.5 for value in overlaps]
                named += [rows[i][0] == shot["tag"] for i in range(1, 5)]
                assert shot[key]["switches"] == sum(rows[i][0] != rows[i + 1][0] for i in range(4))
        # The square of 16 × 16 pixels, inclusive 17 × 17, moves by one pixel per frame; it is absent in the first.
        assert shot["true_jitter"] == pytest.approx(1 - 16 / 18)
        assert (shot["frames"], shot["boxed_frames"]) == (5, 4)
    assert result["over_frames"]["without_tag"]["corloc"] == pytest.approx(100 * sum(hits) / 12)
    assert result["over_frames"]["without_tag"]["class_right"] == pytest.approx(100 * sum(named) / 12)
    assert "cat/test-0" in outcome.out
    assert f"smoothing {smooth}" in outcome.out


def frames_table(collection, folder, tags):
    """The test films as images with a table of one row per box, as the stored real frames have it."""
    truth = read_truth(collection.truth)
    lines = ["video,shot,frame,class,split,width,height,x1,y1,x2,y2"]
    for film, tag in tags.items():
        for frame in decode(collection.videos / f"{film}.mp4"):
            image = f"frames/{film}/{frame.index}.png"
            (folder / image).parent.mkdir(parents=True, exist_ok=True)
            with VideoWriterImage(folder / image) as write:
                write(frame.image)
            (box,) = truth.boxes(film, frame.index) or [("", "", "", "")]
            lines.append(",".join(map(str, (film, film, image, tag, "val", 48, 40, *box))))
    (folder / "manifest.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "manifest.csv"
