"""Every study runs from nothing to its page, and what it says is what its cells say."""

import json
import shutil
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from colocam.evaluation.metrics import PROTOCOLS
from lab.study import STUDIES
from lab.study.cells import Trained, run_cell
from lab.study.figures import draw
from lab.study.recipe import Results, published
from lab.study.tables import Measured
from lab.study.workplace import Lab, StudyData
from tests.helpers.csv_tables import csv_rows

PAPER = [name for name in STUDIES if name != "videos"]  # that one is our own


def table(folder, name="table"):
    return csv_rows(folder / f"{name}.csv")


def cell_results(folder):
    paths = (folder.parent / "work" / "cells").glob("*/result.json")
    return {path.parent.name: json.loads(path.read_text(encoding="utf-8")) for path in paths}


@pytest.mark.parametrize("name", PAPER)
def test_a_study_ends_in_tables_a_drawing_and_a_page(name, smoked):
    folder = smoked(name)
    ET.fromstring((folder / "figure.svg").read_text(encoding="utf-8"))
    assert (folder / "figure.png").read_bytes().startswith(b"\x89PNG")
    said = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    assert "SMOKE TEST" in said["data"]
    assert said["seeds"] == "0"
    assert "UNFINISHED" not in said["cells"]
    rows = table(folder)
    assert len(rows) == len(said["tables"]["table"]) > 0
    page, text = ((folder / file).read_text(encoding="utf-8") for file in ("index.html", "README.md"))
    for part in (STUDIES[name].title, published(name)["source"].split(" (")[0]):
        assert part in page
        assert part in text
    for row in rows:
        assert next(iter(row.values())) in text
    assert "<script" not in page
    assert "oracle-per-class" in text or name in {"loss-time", "cost", "visual"}
    if name not in {"compare", "loss-time", "cost", "stability", "clip-es", "visual"}:
        for row in rows:
            assert all(0 <= float(row[protocol]) <= 100 for protocol in PROTOCOLS)
            assert {row[f"{protocol}, seeds"] for protocol in PROTOCOLS} == {"1"}


def test_the_studies_share_one_classifier_and_equal_cells(smoked):
    for name in ("compare", "losses", "temporal", "sampling", "frames"):
        folder = smoked(name)
    stage1 = list((folder.parent / "work" / "stage1").iterdir())
    assert len([run for run in stage1 if "output_stride: 8" in (run / "config.yaml").read_text(encoding="utf-8")]) == 1
    rows = {
        name: {row[column]: row for row in table(smoked(name))}
        for name, column in (("temporal", "method"), ("losses", "terms"), ("frames", "method"), ("compare", "method"))
    }
    whole = [rows["temporal"]["CoLo-CAM"], rows["losses"]["PLs + ASC + CRF + CoLoc"], rows["compare"]["CoLo-CAM"]]
    assert len({row["tags-only"] for row in whole}) == 1
    assert rows["frames"]["TCAM, n = 2"]["tags-only"] == rows["temporal"]["TCAM"]["tags-only"]
    assert rows["frames"]["TCAM, n = 1"]["tags-only"] == rows["temporal"]["F-CAM"]["tags-only"]
    digests = [name.rpartition("-")[2] for name in cell_results(folder)]
    assert len(digests) == len(set(digests))


@pytest.mark.parametrize("name", PAPER)
def test_a_study_that_was_stopped_at_once_has_empty_tables(name, collection, tmp_path):
    lab = Lab(tmp_path, StudyData("none", collection.manifest, collection.truth), smoke=True, device="cpu")
    findings = STUDIES[name].read(lab, Results())
    assert findings.tables
    assert all(draw(drawing)[1].startswith(b"\x89PNG") for drawing in findings.drawings)
    measured = [
        entry for table in findings.tables for row in table.rows for entry in row if isinstance(entry, Measured)
    ]
    assert measured == []


def test_a_table_holds_what_its_cells_found(smoked, lab):
    (row,) = [row for row in table(smoked("temporal")) if row["method"] == "CoLo-CAM"]
    _, result = run_cell(lab, Trained("colocam"), 0)
    for protocol in PROTOCOLS:
        assert float(row[protocol]) == result["corloc"][protocol]["average"]


def test_results_of_version_0_1_0_are_read(lab, tmp_path):
    """Then tags stood beside the other keys of a CorLoc."""
    folder, result = run_cell(lab, Trained("colocam"), 0)
    shutil.copytree(folder, tmp_path / "work" / "cells" / folder.name)
    old = json.loads(json.dumps(result))
    for corloc in old["corloc"].values():
        corloc.update(corloc.pop("classes"))
    assert "bus" in old["corloc"]["tags-only"]
    (tmp_path / "work" / "cells" / folder.name / "result.json").write_text(json.dumps(old), encoding="utf-8")
    _, again = run_cell(replace(lab, out=tmp_path), Trained("colocam"), 0)
    assert again == result


def test_compare_has_all_methods_and_marks_what_is_quoted(smoked):
    rows = {row["method"]: row for row in table(smoked("compare"))}
    assert len(rows) == 27  # 26 of v1.0 and one row that v2.2 alone has
    assert rows["Prest et al."]["source"] == "quoted"
    assert rows["Prest et al."]["tags-only"] == ""
    assert rows["CLIP-ES"]["source"] == "not run"
    assert rows["CoLo-CAM"]["source"] == "run here"
    assert float(rows["CoLo-CAM"]["published, v2.2"]) == 77.1
    assert float(rows["LayerCAM"]["ms/frame"]) > 0
    assert {row["tags-only"] for name, row in rows.items() if name in {"GradCAM", "XGradCAM"}} == {
        rows["GradCAM"]["tags-only"]
    }
    assert "set clip.model to a folder" in (smoked("compare") / "README.md").read_text(encoding="utf-8")
    per_class = table(smoked("compare"), "classes")
    assert {"bus", "cat", "owl"} <= per_class[0].keys()
    (colocam,) = [row for row in per_class if row["method, protocol"] == "CoLo-CAM, oracle-per-class"]
    mean = sum(float(colocam[tag]) for tag in ("bus", "cat", "owl")) / 3
    assert float(rows["CoLo-CAM"]["oracle-per-class"]) == pytest.approx(mean)


def test_clips_that_a_tag_does_not_have_cannot_be_left_out(smoked):
    rows = table(smoked("stability"))
    assert [row["left out"] for row in rows] == ["m = 1", "m = 5"]
    assert float(rows[0]["tags-only"]) >= 0
    assert rows[1]["tags-only"] == ""
    assert "Not run: m = 5; a tag has only 2 training clips" in (smoked("stability") / "README.md").read_text("utf-8")


def test_pictures_are_of_the_three_methods(smoked):
    page = (smoked("visual") / "index.html").read_text(encoding="utf-8")
    for title in ("LayerCAM", "TCAM", "CoLo-CAM", "Empty frames", "Best cases"):
        assert title in page
    assert page.count("data:image/jpeg") >= 4 * 4
    (empty,) = [row for row in table(smoked("visual")) if row["failure"] == "Box on an empty frame"]
    assert 0 <= float(empty["frames"]) <= 3


def test_a_wheel_says_where_benchmarks_and_studies_are(colocam, monkeypatch, tmp_path):
    monkeypatch.setattr("colocam.cli.measure_commands.CLONE", tmp_path)
    for command in (("study", "--list"), ("bench", "cam")):
        assert "clone the repository" in colocam(*command).error
