"""A second look against the steps done by hand, with networks whose maps are known functions of the image."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
import pytest

from colocam.boxes.iou import iou
from colocam.config import load_config
from colocam.config.card import read_card
from colocam.config.options import Options
from colocam.errors import ArgumentError
from colocam.inference import Localizer
from colocam.inference.network import NetworkOutput, completed
from colocam.temporal.look import Look, Square, square_around
from colocam.types import VideoFrame
from tests.helpers.cards import cat_or_dog

SIDE = 64
WIDTH, HEIGHT = 320, 240


class RedNetwork:
    """Its map is the red channel, blurred; ``change`` replaces the maps of enlarged images, whose corner is gray."""

    rows, on_gpu = 4, False

    def __init__(self, blur=5, change=None):
        self.blur, self.change = blur, change
        self.images = []

    def submit(self, images, ids):
        (joined,) = images
        self.images.append(joined.copy())
        maps = np.stack([cv2.blur(image[..., 0], (self.blur, self.blur)) for image in joined]).astype(np.float32) / 255
        if self.change is not None:
            for level, image in zip(maps, joined, strict=True):
                if image[0, 0, 2] < 100:  # the corner of a whole frame is blue
                    level[...] = self.change(level)
        count = len(joined)
        logits, peaks = np.zeros((count, 2), np.float32), np.ones((count, 2), np.float32)
        logits[:, 0] = 1
        return completed(NetworkOutput(logits, maps, peaks, np.ones((count, 2, 4, 4), np.float32), joined, ids))

    def settle(self):
        pass


def localizer_of(network, looks=2, **options):
    return Localizer(network, cat_or_dog(SIDE), Options(looks=looks, **{"smooth": "none", **options}))


def picture(x, y, width=30, height=20):
    """A gray frame with a red rectangle and blue corners."""
    image = np.full((HEIGHT, WIDTH, 3), 20, np.uint8)
    image[y : y + height, x : x + width, 0] = 250
    for rows in (slice(0, 12), slice(-12, None)):
        image[rows, :16, 2] = image[rows, -16:, 2] = 200
    return image


def frames_of(pictures):
    return [VideoFrame(index, index / 25, image) for index, image in enumerate(pictures)]


def found_in(localizer, pictures):
    return [found for _, found in localizer.stream(frames_of(pictures))]


PLACES = [(40 + 9 * at, 30 + 7 * at) for at in range(20)]


@pytest.mark.parametrize("smooth", ["none", "online", "offline"])
def test_a_small_object_has_a_closer_box(smooth):
    pictures, true = [picture(*PLACES[5])] * 6, np.array([*PLACES[5], PLACES[5][0] + 30, PLACES[5][1] + 20.0])
    once, twice = (found_in(localizer_of(RedNetwork(), looks, smooth=smooth), pictures) for looks in (1, 2))
    assert all(iou(np.array(one.box), true) < 0.65 for one in once)
    assert all(iou(np.array(one.box), true) > 0.8 for one in twice)


@pytest.mark.parametrize("place", PLACES[::4])
def test_it_is_cutting_localizing_and_mapping_back(place):
    """The part that is cut out of the frame by hand, localized as a video of its own."""
    image = picture(*place)
    (first,) = found_in(localizer_of(RedNetwork(), 1), [image])
    (second,) = found_in(localizer_of(RedNetwork(), 2), [image])
    x1, y1, x2, y2 = first.box
    share = max(1.15 * max((x2 - x1) / WIDTH, (y2 - y1) / HEIGHT), 0.2)
    cells = np.ceil(share * SIDE)
    left = round(min(max((x1 + x2) / 2 * SIDE / WIDTH - cells / 2, 0), SIDE - cells)) * WIDTH // SIDE
    top = round(min(max((y1 + y2) / 2 * SIDE / HEIGHT - cells / 2, 0), SIDE - cells)) * HEIGHT / SIDE
    width, height = cells * WIDTH / SIDE, cells * HEIGHT / SIDE
    part = image[round(top) : round(top + height), left : round(left + width)]
    enlarged = cv2.resize(part, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)
    (inside,) = found_in(localizer_of(RedNetwork(), 1), [enlarged])
    expected = np.array(inside.box) * ([width / SIDE, height / SIDE] * 2) + [left, top, left, top]
    np.testing.assert_allclose(second.box, expected, atol=0.5)


def test_a_look_without_heat_is_not_taken():
    network = RedNetwork(change=lambda level: 0 * level)
    once, twice = (found_in(localizer_of(network, looks), [picture(*PLACES[3])]) for looks in (1, 2))
    assert twice[0].box == once[0].box is not None
    np.testing.assert_array_equal(twice[0].raw_map, once[0].raw_map)


def test_a_look_that_leaves_the_box_is_not_taken():
    def corner(level):
        other = np.zeros_like(level)
        other[:6, :6] = 1
        return other

    network = RedNetwork(change=corner)
    once, twice = (found_in(localizer_of(network, looks), [picture(*PLACES[3])]) for looks in (1, 2))
    assert twice[0].box == once[0].box is not None


def test_a_frame_without_an_object_has_none():
    black = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    found = found_in(localizer_of(RedNetwork()), [black, picture(*PLACES[2]), black])
    assert [one.box is None for one in found] == [True, False, True]


def test_an_object_that_fills_the_frame_is_looked_at_once():
    network = RedNetwork()
    found_in(localizer_of(network), [picture(5, 5, 310, 230)])
    assert len(network.images) == 1


@pytest.mark.parametrize("smooth", ["none", "online", "offline"])
@pytest.mark.parametrize("looks", [2, 3])
def test_boxes_do_not_depend_on_the_batch(smooth, looks):
    pictures = [picture(*place) for place in PLACES]
    pictures[7] = np.zeros_like(pictures[7])
    networks = [RedNetwork() for _ in range(3)]
    found = [
        found_in(localizer_of(network, looks, smooth=smooth, batch=batch), pictures)
        for network, batch in zip(networks, (None, 1, 3), strict=True)
    ]
    for one, *others in zip(*found, strict=True):
        assert all(other.box == one.box for other in others)
    enlarged = [
        {(row, image.tobytes()) for images in network.images for row, image in enumerate(images) if image.any()}
        for network in networks
    ]
    assert enlarged[0] == enlarged[1] == enlarged[2]  # each image in the same row of its pass


def test_the_crops_of_a_window_share_passes():
    network = RedNetwork()
    found_in(localizer_of(network, smooth="offline", motion=False), [picture(*PLACES[0])] * 16)
    assert len(network.images) == 2 * 16 // network.rows


def test_the_outline_lies_in_the_box():
    (found,) = found_in(localizer_of(RedNetwork(blur=1), masks=True), [picture(*PLACES[4])])
    rows, columns = np.nonzero(found.mask)
    x, y = PLACES[4]
    true = np.zeros((HEIGHT, WIDTH), bool)
    true[y : y + 20, x : x + 30] = True
    assert (found.mask & true).sum() / (found.mask | true).sum() > 0.75
    assert found.box.x1 - 3 <= columns.min() <= columns.max() <= found.box.x2 + 3
    assert found.box.y1 - 3 <= rows.min() <= rows.max() <= found.box.y2 + 3


def test_the_heat_map_shows_what_the_box_was_read_from():
    (found,) = found_in(localizer_of(RedNetwork(blur=9)), [picture(*PLACES[4])])
    (once,) = found_in(localizer_of(RedNetwork(blur=9), 1), [picture(*PLACES[4])])
    assert found.raw_map.shape == once.raw_map.shape
    assert (found.raw_map > 0.3).sum() < (once.raw_map > 0.3).sum()


def test_who_looks_how_often():
    network = RedNetwork()
    base = localizer_of(network, None)
    assert base.settings.looks == 1
    twice = Localizer(base.network, base.card.model_copy(update={"looks": 2}))
    assert twice.settings.looks == 2
    assert twice.with_options(instances=True).settings.looks == 2
    assert Localizer(twice.network, twice.card, Options(instances=True), segmenter=object()).settings.looks == 1
    assert twice.with_options(looks=1).settings.looks == 1
    assert Localizer(twice.network, twice.card, segmenter=object()).settings.looks == 1
    with pytest.raises(ArgumentError, match="looks must be 1 to 3, got 4"):
        localizer_of(network, 4)


@pytest.mark.parametrize(
    ("box", "size", "square"),
    [
        ((30, 30, 40, 36), 64, (28, 26, 13)),  # a fifth of 64 is 12.8
        ((0, 0, 20, 10), 64, (0, 0, 23)),  # moved into the frame
        ((44, 50, 64, 64), 64, (41, 41, 23)),
        ((0, 0, 54, 20), 64, (0, 0, 63)),
        ((0, 0, 63, 20), 64, None),
        ((0, 0, 27, 20), 448, (0, 0, 32)),  # half of the frame, 224 pixels of the network's
        ((0, 0, 28, 20), 448, None),
    ],
)
def test_the_square(box, size, square):
    assert square_around(np.array(box, float), SIDE, size) == (None if square is None else Square(*square))


@pytest.mark.parametrize(("width", "side"), [(13, 15), (14, None)])
def test_with_a_prior_the_square_has_at_most_112_pixels_of_the_network(width, side):
    square = square_around(np.array([0, 0, width, 9], float), SIDE, 448, prior=True)
    assert (square and square.side) == side


def test_a_square_covers_at_least_one_pixel_of_a_tiny_frame():
    rows, columns = Square(60, 0, 13).in_frame((3, 2), 73)
    assert (rows.stop - rows.start, columns.stop - columns.start) == (1, 1)


def test_a_mask_that_no_contour_has_is_none():
    boxes = np.array([[1.0, 1, 5, 5]])
    look = Look(Square(0, 0, 32), np.zeros((SIDE, SIDE), np.uint8), boxes, np.zeros(2, np.float32), 0.5)
    assert look.mask(0, 0.4, (HEIGHT, WIDTH)) is None


def test_streams_in_threads_do_not_disturb_each_other():
    localizer = localizer_of(RedNetwork(), smooth="offline")
    videos = [[picture(*place)] * 5 for place in PLACES[:4]]
    alone = [[one.box for one in found_in(localizer, video)] for video in videos]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda video: [one.box for one in found_in(localizer, video)], videos))
    assert together == alone


def test_models_of_earlier_versions_look_once_and_the_ready_model_twice():
    root = Path(__file__).parents[2]
    assert Localizer.load(root / "tests" / "stored" / "version-0.1.0" / "model.onnx").settings.looks == 1
    ready = root / "models" / "youtube-objects-lite0"
    assert Localizer.load(ready / "youtube-objects-lite0.onnx").settings.looks == 2
    assert read_card(ready).looks == load_config("lite0").stage2("colocam").looks == 2
    assert load_config("paper").stage2("colocam").looks == 1
