"""A model of version 0.1.0, as a run folder and as an ONNX file, gives the localisation tables of that version again.

Numbers may differ as much as processors round differently: probabilities by 1e-4, coordinates by 0.01 pixels. The film
has 24 frames in one shot, which is one window, as it was one batch of version 0.1.0.
"""

import csv
from pathlib import Path

import pytest

from colocam.inference.localize import localize_file

STORED = Path(__file__).parents[1] / "stored" / "version-0.1.0"
EXACT = ("frame", "pts", "class", "track")
PIXELS = ("x1", "y1", "x2", "y2")


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("smooth", ["offline", "online", "none"])
@pytest.mark.parametrize("model", ["run", "model.onnx"])
def test_the_stored_tables_come_out_again(tmp_path, model, smooth):
    found = read(localize_file(STORED / model, STORED / "film.mp4", tmp_path, annotate=False, smooth=smooth).table)
    want = read(STORED / f"{smooth}.csv")
    assert len(found) == len(want) == 24
    for one, two in zip(found, want, strict=True):
        assert one.keys() == two.keys()
        for name, value in two.items():
            if name in EXACT or value == "":
                assert one[name] == value
            else:
                assert float(one[name]) == pytest.approx(float(value), abs=0.01 if name in PIXELS else 1e-4)
