"""A CAM, a loss, a method and a chooser that nobody at colocam has thought of, in one file, from training to labels."""

import json

import pytest

from colocam.boxes import CHOOSERS
from colocam.cams import CAMS
from colocam.config import METHODS
from colocam.config.card import parse_card
from colocam.labels.table import read_table
from colocam.losses import LOSSES

EXTENSION = """
import numpy as np

from colocam.boxes import CHOOSERS, Candidates, Chooser
from colocam.cams import CAMS, Cam
from colocam.config import METHODS, Method
from colocam.losses import LOSSES, Loss


def corner(maps, threshold):
    box = np.array([[1.0, 2.0, 9.0, 8.0]])
    return [Candidates(box, np.ones(1), np.full(1, threshold), 1) for _ in maps]


CAMS["strength"] = Cam("Strength", lambda seen: seen.features[-1].norm(dim=1))
CHOOSERS["corner"] = Chooser("always the same corner", corner)
LOSSES["mean"] = Loss("Mean of the maps", lambda settings: lambda step: step.maps.mean())
losses = {"crf": 0.0, "size": 0.0, "coloc": 0.0, "extra": {"mean": 0.1}}
METHODS["calm"] = Method("Calm", {"losses": losses, "decoder": [8, 8, 8, 8]})
"""
CHOSEN = ("cam=strength", "methods=[calm, fcam]", "localizer.chooser=corner", "localizer.threshold=0.2")


def test_one_file_serves_every_command(monkeypatch, tmp_path, collection, frame_cache, tiny_sets, colocam, journal):
    for registry, name in ((CAMS, "strength"), (METHODS, "calm"), (LOSSES, "mean"), (CHOOSERS, "corner")):
        monkeypatch.setitem(registry, name, None)  # the file replaces it, and the test removes it
    (tmp_path / "mine.py").write_text(EXTENSION, encoding="utf-8")
    monkeypatch.setenv("COLOCAM_EXTENSIONS", str(tmp_path / "mine.py"))

    def command(*words):
        outcome = colocam(*words)
        assert outcome.code == 0, outcome.err
        return outcome.out

    run, video = tmp_path / "run", collection.videos / "cat" / "test-0.mp4"
    chosen = [word for name in CHOSEN for word in ("--set", name)]
    command(
        "train", collection.manifest, "--preset", "demo", "--out", run, "--frames", frame_cache, *tiny_sets, *chosen
    )
    for line in journal(run, "calm"):
        assert line["loss"] == pytest.approx(line["seeds"] + line["mean"], rel=1e-4)
        assert line["mean"] > 0
        assert not line.keys() & {"crf", "size", "coloc"}
    assert all(line.keys() >= {"seeds", "crf", "size"} for line in journal(run, "fcam"))
    card = parse_card((run / "model.json").read_text(encoding="utf-8"), "model.json")
    assert (card.method, card.decoder, card.chooser, card.threshold) == ("calm", (8, 8, 8, 8), "corner", 0.2)
    printed = command("evaluate", run, "--boxes", collection.truth)
    evaluated = json.loads((run / "evaluation.json").read_text(encoding="utf-8"))["methods"]
    assert list(evaluated) == ["strength", "fcam", "calm"]
    assert evaluated["calm"]["tags-only"]["threshold"] == 0.2
    assert evaluated["calm"]["tags-only"] != evaluated["calm"]["oracle-global"]
    command("report", run)
    page = (run / "report" / "index.html").read_text(encoding="utf-8")
    assert all(title in printed and title in page for title in ("Strength", "Calm"))
    assert "Mean of the maps" in page
    for smooth in ("none", "offline"):
        command("localize", run, video, "-o", tmp_path / smooth, "--smooth", smooth, "--no-video")
        table = tmp_path / smooth / "test-0.csv"
        for box in read_table(table).box:  # maps of 32 × 32 pixels, frames of 48 × 40
            assert box.tolist() == pytest.approx([1 * 1.5, 2 * 1.25, 9 * 1.5, 8 * 1.25], abs=1e-3)
    command("export", table, "--to", "coco", "-o", tmp_path / "labels")
    labels = json.loads((tmp_path / "labels" / "annotations" / "instances_default.json").read_text(encoding="utf-8"))
    assert {round(label["bbox"][2], 2) for label in labels["annotations"]} == {12}
