"""A video whose class is probably wrong is doubtful as a whole."""

import csv

import numpy as np
import pytest

from colocam.labels.review import class_in_doubt, review_tables


@pytest.mark.parametrize(
    ("probability", "doubted"),
    [([0.39] * 40, True), ([0.7] * 40, False), ([np.nan, 0.2], True), ([np.nan], False), ([], False)],
)
def test_the_mean_probability_decides(probability, doubted):
    assert class_in_doubt(np.array(probability, float)) is doubted


def test_review_names_the_videos(tmp_path, capfd):
    for name, probability in (("swan", 0.39), ("cat", 0.9)):
        rows = [f"{at},dog,{probability},1,2,11,12,0.9" for at in range(5)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["frame,class,probability,x1,y1,x2,y2,score", *rows, ""]))
    queue = review_tables([tmp_path / "cat.csv", tmp_path / "swan.csv"], tmp_path / "queue.csv", share=0.5)
    listed = list(csv.DictReader(queue.open()))
    assert [row["video"] for row in listed] == ["swan"] * 5  # a wrong class is wrong in every frame
    assert {row["reason"] for row in listed} == {"the class is in doubt in the whole video"}
    assert all(float(row["doubt"]) >= 0.5 for row in listed)
    assert "the class is in doubt in all frames of swan: look there first" in capfd.readouterr().err
