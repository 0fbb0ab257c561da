"""Boxes of clicks, from heat maps that are drawn and from a segmenter that is told what to answer."""

from types import SimpleNamespace

import numpy as np
import pytest

from colocam.segment.segmenter import BACKGROUND, PADDING, POINT, Masks
from colocam.serve.clicks import Click, box_in_map, box_of_segmenter, embed
from tests.helpers.served_library import MovingBox, serving

WIDTH, HEIGHT = 640, 480


def drawn(*boxes):
    """A heat map (64, 64) that is 1 inside boxes, which are in cells."""
    levels = np.zeros((64, 64), np.uint8)
    for x1, y1, x2, y2 in boxes:
        levels[y1:y2, x1:x2] = 255
    return levels


def in_pixels(*box):
    """Cells of a map as pixels of the frame."""
    return np.array(box) * np.tile([WIDTH / 64, HEIGHT / 64], 2)


ONE, TWO = (8, 10, 24, 30), (40, 12, 56, 40)
CELL = WIDTH / 64


@pytest.mark.parametrize("box", [ONE, TWO])
@pytest.mark.parametrize("place", [(0.5, 0.5), (0.3, 0.6), (0.9, 0.1)])
def test_a_click_gives_the_region_around_it(box, place):
    x1, y1, x2, y2 = in_pixels(*box)
    found = box_in_map(drawn(ONE, TWO), [Click(x1 + place[0] * (x2 - x1), y1 + place[1] * (y2 - y1))], WIDTH, HEIGHT)
    np.testing.assert_allclose(found, in_pixels(*box), atol=CELL)


def test_a_second_click_adds_and_one_beside_the_object_takes_away():
    first, second = Click(*in_pixels(16, 20, 0, 0)[:2]), Click(*in_pixels(48, 26, 0, 0)[:2])
    both = box_in_map(drawn(ONE, (42, 20, 50, 30)), [first, second], WIDTH, HEIGHT)
    np.testing.assert_allclose(both, in_pixels(8, 10, 50, 30), atol=CELL)
    beside = Click(*in_pixels(21, 20, 0, 0)[:2], inside=False)
    cut = box_in_map(drawn(ONE), [first, beside], WIDTH, HEIGHT)
    np.testing.assert_allclose(cut, [*in_pixels(8, 10, 0, 0)[:2], beside.x, in_pixels(*ONE)[3]], atol=CELL)


def test_a_click_where_there_is_no_heat_adds_its_surroundings_alone():
    first, second = Click(*in_pixels(16, 20, 0, 0)[:2]), Click(*in_pixels(30, 34, 0, 0)[:2])
    found = box_in_map(drawn(ONE), [first, second], WIDTH, HEIGHT)
    np.testing.assert_allclose(found, in_pixels(8, 10, 30, 34), atol=3 * CELL)
    assert found[2] > second.x
    assert found[3] > second.y


def test_boxes_of_any_map_are_in_the_frame_and_hold_the_first_click():
    random = np.random.default_rng(0)
    for _ in range(30):
        levels = random.integers(0, 256, (64, 64), dtype=np.uint8) // np.uint8(random.integers(1, 200))
        clicks = [
            Click(random.uniform(0, WIDTH), random.uniform(0, HEIGHT), inside=at == 0 or bool(random.integers(2)))
            for at in range(random.integers(1, 5))
        ]
        x1, y1, x2, y2 = box_in_map(levels, clicks, WIDTH, HEIGHT)
        assert 0 <= x1 <= clicks[0].x <= x2 <= WIDTH
        assert 0 <= y1 <= clicks[0].y <= y2 <= HEIGHT
        assert min(x2 - x1, y2 - y1) >= 1


class ToldSegmenter:
    """Gives three masks of its square of 64 cells: the first two are rectangles in cells, the third is empty."""

    name, side = "Told", 128

    def __init__(self, *boxes, quality=(0.9, 0.9, 0.9)):
        self.boxes, self.quality, self.asked = boxes, quality, None

    def embed(self, images):
        return images.shape

    def masks(self, embedded, prompts):
        self.asked = SimpleNamespace(embedded=embedded, prompts=prompts)
        logits = np.full((1, 1, 3, 64, 64), -1, np.float32)
        for at, (x1, y1, x2, y2) in enumerate(self.boxes):
            logits[0, 0, at, y1:y2, x1:x2] = 1
        return Masks(logits, np.array([[self.quality]], np.float32))


def test_of_a_segmenters_masks_the_one_that_agrees_with_the_map_is_taken():
    # A frame of 640 by 480 fills 64 by 48 cells of the square.
    image, levels = np.zeros((HEIGHT, WIDTH, 3), np.uint8), drawn((8, 12, 24, 40))
    segmenter = ToldSegmenter((12, 12, 16, 18), (8, 9, 24, 30))
    embedded = embed(segmenter, image)
    clicks = [Click(140, 140), Click(500, 400, inside=False)]
    box = box_of_segmenter(segmenter, embedded, image, levels, clicks)
    np.testing.assert_allclose(box, [80, 90, 240, 300], atol=10)
    prompts = segmenter.asked.prompts
    assert segmenter.asked.embedded == (1, 128, 128, 3)
    assert prompts.labels.tolist() == [[[POINT, BACKGROUND, PADDING]]]
    np.testing.assert_allclose(prompts.points[0, 0, :2], [[28, 28], [100, 80]])


def post(served, frame, *clicks, **more):
    return served.client.post(f"/api/videos/{served.video}/clicks/{frame}", json={"clicks": list(clicks), **more})


def test_the_route_gives_boxes_and_says_what_is_wrong(served):
    # The map of the model is 1 in the cells 4 to 8 of 16, of frames of 64 by 48 pixels.
    found = post(served, 3, {"x": 24, "y": 18}).json()
    assert found["box"] == pytest.approx([16, 12, 32, 24], abs=1)
    assert found["by"] == "heat map"
    assert post(served, 3).json()["box"] is None
    assert "no click is on the object" in post(served, 3, {"x": 1, "y": 1, "inside": False}).json()["error"]
    assert post(served, 99, {"x": 1, "y": 1}).status_code == 404
    for wrong in ({"x": "far", "y": 1}, {"x": -1, "y": 1}, {"x": 1}):
        assert post(served, 3, wrong).status_code == 422


def test_a_segmenter_looks_at_a_frame_once(tmp_path, make_video):
    segmenter, looked = ToldSegmenter((16, 12, 32, 24)), []
    segmenter.embed = lambda images: looked.append(len(images)) or images.shape

    class WithSegmenter(MovingBox):
        def __init__(self, *words, **options):
            super().__init__(*words, **options)
            self.segmenter = segmenter

    with serving(
        tmp_path / "page", [make_video(tmp_path / "a.mp4", 6)], model=WithSegmenter, segmenter="told"
    ) as served:
        assert post(served, 2).json() == {"box": None, "by": ""}
        for _ in range(2):
            assert post(served, 2, {"x": 20, "y": 15}).json()["by"] == "Told"
        assert looked == [1]
