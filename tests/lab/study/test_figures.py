"""Drawings say what they were given: names, numbers, gaps."""

import xml.etree.ElementTree as ET

import cv2
import numpy as np
import pytest

from colocam.report.gallery import Case, CaseImage, Group, address
from lab.study.figures import Bars, Boxes, Lines, Series, draw
from lab.study.tables import Measured

OURS = Series("ours", (Measured((60.0, 62.0)), None, Measured((70.0,))))
THEIRS = Series("theirs & others", (80.0, "in words", None), published=True)


def texts(svg):
    return ["".join(node.itertext()).strip() for node in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def pixels(png):
    return cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)


@pytest.mark.parametrize(
    ("drawing", "said"),
    [
        (Bars("CorLoc, %", ("A", "B", "C"), (OURS, THEIRS)), ["A", "B", "C", "ours", "theirs & others", "CorLoc, %"]),
        (Lines("n", "CorLoc, %", (1, 2, 18), (OURS, THEIRS)), ["1", "2", "18", "n", "ours"]),
        (
            Lines("n", "ms", (1, 2, 4), (OURS, Series("energy", (9.0, 10.0, None), right=True)), right="log R"),
            ["log R", "energy", "ms"],
        ),
        (Lines("n", "ms", (1, 2, 256), (OURS,), log=True), ["1", "2", "256"]),
        (
            Boxes("m", "%", (1, 5), (Measured((1.0, 2.0, 4.0)), None), (("v1.0", ((78.0, 1.0), (77.0, 2.0))),)),
            ["m", "v1.0", "1", "5"],
        ),
    ],
)
def test_names_and_places_are_written(drawing, said):
    svg, png = draw(drawing)
    assert set(said) <= set(texts(svg))
    assert pixels(png).shape[2] == 3
    assert draw(drawing) == (svg, png)


def test_a_bar_is_as_high_as_its_mean():
    """One bar reaches up to 60, one to 30: its height in the SVG is half."""
    svg, _ = draw(Bars("%", ("A", "B"), (Series("ours", (Measured((50.0, 70.0)), Measured((30.0,)))),)))
    heights = []
    for group in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}path"):
        if "fill: #b8400a" in group.get("style", "") and group.get("clip-path"):
            ys = [float(word) for word in group.get("d").replace("\n", " ").split() if word[0].isdigit()][1::2]
            heights.append(max(ys) - min(ys))
    assert heights[0] == pytest.approx(2 * heights[1], rel=1e-3)


def group(count):
    image = np.full((12, 16, 3), (200, 30, 40), np.uint8)
    picture = CaseImage("CoLo-CAM", address(image, 95), "", "IoU 0.90", right=True)
    case = Case("cat", "cat/0", 3, "cat", 0.9, (picture, picture))
    return Group("best", "Best cases", "", (case,) * count)
