"""Several objects, looked at in parts and one by one, with networks whose maps are known functions of the image."""

from typing import Any, cast

import cv2
import numpy as np
import pytest

from colocam.boxes.iou import iou
from colocam.config.options import Options
from colocam.inference import Localizer
from colocam.inference.network import NetworkOutput, completed
from colocam.inference.passes import Passes
from colocam.inference.remote import RemoteNetwork, ServedWorker
from colocam.inference.second_look import Found, distinct
from colocam.temporal.look import Square, four_parts
from colocam.types import VideoFrame
from tests.helpers.cards import cat_or_dog

SIDE = 64
WIDTH, HEIGHT = 320, 240
PAIR = [(60, 50, 40, 36), (112, 50, 40, 36)]
"""Two rectangles, 12 pixels apart; at the network's size 2.4, so that a blur of 5 joins them."""


class RedNetwork:
    """Its map is the red channel, blurred; red regions of fewer than ``least`` pixels are not seen.

    The first class has a high peak where there is green, or everywhere if ``green`` is false.
    """

    rows, on_gpu = 4, False

    def __init__(self, blur=5, least=0, *, green=False):
        self.blur, self.least, self.green = blur, least, green
        self.images = []

    def submit(self, images, ids):
        (joined,) = images
        self.images.append(joined.copy())
        maps = np.stack([self._map(image[..., 0]) for image in joined])
        count = len(joined)
        logits, peaks = np.zeros((count, 2), np.float32), np.zeros((count, 2), np.float32)
        logits[:, 0] = 1
        peaks[:, 0] = [5 if not self.green or (image[..., 1] > 150).any() else -5 for image in joined]
        return completed(NetworkOutput(logits, maps, peaks, np.ones((count, 2, 4, 4), np.float32), joined, ids))

    def _map(self, red):
        count, regions, stats, _ = cv2.connectedComponentsWithStats((red > 60).astype(np.uint8))
        seen = red.astype(np.float32) / 255
        for region in range(1, count):
            if stats[region, cv2.CC_STAT_AREA] < self.least:
                seen[regions == region] = 0
        return cv2.blur(seen, (self.blur, self.blur))

    def settle(self):
        pass


def localizer_of(network, looks=2, presence=(1.0, 0.0), **options):
    card = cat_or_dog(SIDE).model_copy(update={"presence": presence})
    return Localizer(network, card, Options(looks=looks, instances=True, **{"smooth": "none", **options}))


def picture(*rectangles):
    image = np.full((HEIGHT, WIDTH, 3), 20, np.uint8)
    for x, y, width, height in rectangles:
        image[y : y + height, x : x + width, 0] = 250
    return image


def boxes_of(localizer, image):
    frames = [VideoFrame(0, 0.0, image)]
    return [np.array(found.box) for _, found in localizer.stream(frames) if found.box is not None]


def overlaps(found, rectangles):
    """IoU of each rectangle with the best box."""
    true = [np.array([x, y, x + width, y + height], float) for x, y, width, height in rectangles]
    return [max((float(iou(box, one)) for box in found), default=0.0) for one in true]


@pytest.mark.parametrize("smooth", ["none", "online", "offline"])
def test_objects_that_one_map_joins_are_told_apart(smooth):
    once, twice = (boxes_of(localizer_of(RedNetwork(), looks, smooth=smooth), picture(*PAIR)) for looks in (1, 2))
    assert len(once) == 1
    assert len(twice) == 2
    assert min(overlaps(twice, PAIR)) > 0.75


def test_an_object_too_small_for_the_network_is_found_in_a_part():
    objects = [PAIR[0], (250, 180, 20, 15)]
    once, twice = (boxes_of(localizer_of(RedNetwork(3, least=20), looks), picture(*objects)) for looks in (1, 2))
    assert overlaps(once, objects)[1] == 0
    assert min(overlaps(twice, objects)) > 0.7
    assert len(twice) == 2


def test_an_object_of_which_each_part_has_a_piece_keeps_one_box():
    wide = [(20, 100, 280, 40)]  # every part of the frame cuts it
    found = boxes_of(localizer_of(RedNetwork()), picture(*wide))
    assert len(found) == 1
    assert overlaps(found, wide)[0] > 0.85


def test_a_part_in_which_the_class_is_not_seen_counts_less():
    """The same small objects; the class is recognized in that part of the frame alone where the green is."""
    objects = [(40, 40, 16, 12), (264, 188, 16, 12)]
    image = picture(*objects)
    image[200:215, 200:215, 1] = 250
    scores = {}
    frames = [VideoFrame(0, 0.0, image)]
    for _, found in localizer_of(RedNetwork(least=12, green=True), presence=(0.2, 0.0)).stream(frames):
        scores[int(found.box.x1 > WIDTH / 2)] = found.score
    assert scores[1] > 1.2 * scores[0] > 0


def test_an_empty_frame_stays_empty():
    assert boxes_of(localizer_of(RedNetwork()), np.zeros((HEIGHT, WIDTH, 3), np.uint8)) == []


@pytest.mark.parametrize("smooth", ["none", "online", "offline"])
@pytest.mark.parametrize("looks", [2, 3])
def test_boxes_do_not_depend_on_the_batch(smooth, looks):
    pictures = [picture(*[(x + 4 * at, y + 3 * at, *size) for x, y, *size in PAIR[: at % 3]]) for at in range(14)]
    networks = [RedNetwork() for _ in range(3)]
    frames = [VideoFrame(at, at / 25, image) for at, image in enumerate(pictures)]
    models = [
        localizer_of(network, looks, smooth=smooth, batch=batch)
        for network, batch in zip(networks, (None, 1, 3), strict=True)
    ]
    found = [[(row.frame, row.box, row.score) for _, row in model.stream(frames)] for model in models]
    assert found[0] == found[1] == found[2]
    assert any(box is not None for _, box, _ in found[0])


def test_a_window_looks_at_parts_and_objects_in_shared_passes():
    network = RedNetwork()
    frames = [VideoFrame(at, at / 25, picture(*PAIR)) for at in range(16)]
    list(localizer_of(network, smooth="offline").stream(frames))
    assert len(network.images) == (16 + 4 * 16 + 2 * 16) / network.rows  # frames, parts, objects


@pytest.mark.parametrize("smooth", ["online", "offline"])
def test_a_video_worker_finds_the_same_as_one_process(smooth):
    """A worker's memory has room for the outputs of a window or a pass."""
    local = localizer_of(RedNetwork(), smooth=smooth)
    remote: Any = None
    passes = cast("Passes", local.network)
    served = ServedWorker(passes, lambda message: remote.receive(message), int)  # noqa: PLW0108 - made below
    remote = RemoteNetwork(served.receive, local.network.rows, local.network.shape, served.file)
    frames = [VideoFrame(at, at / 25, picture(*PAIR)) for at in range(40)]
    models = local, Localizer(remote, local.card, local.options)
    found = [[(row.frame, row.box, row.score) for _, row in model.stream(frames)] for model in models]
    served.close()
    assert found[0] == found[1]
    assert len(found[0]) == 2 * 40


def test_a_third_look_looks_at_the_objects_again():
    counts = []
    for looks in (2, 3):
        network = RedNetwork()
        list(localizer_of(network, looks, smooth="offline").stream([VideoFrame(0, 0.0, picture(*PAIR))]))
        counts.append(sum(int(images.any((1, 2, 3)).sum()) for images in network.images))
    assert counts[1] - counts[0] == 2


def test_a_place_of_few_pixels_is_not_enlarged():
    """In a frame of 100 pixels, a fifth has 20: there is nothing new in them."""
    network = RedNetwork()
    small = cv2.resize(picture(*PAIR), (100, 75), interpolation=cv2.INTER_AREA)
    list(localizer_of(network, smooth="offline").stream([VideoFrame(0, 0.0, small)]))
    assert sum(int(images.any((1, 2, 3)).sum()) for images in network.images) == 1 + 4


def test_outlines_lie_in_their_boxes_and_the_map_shows_both():
    frames = [VideoFrame(0, 0.0, picture(*PAIR))]
    rows = [row for _, row in localizer_of(RedNetwork(), masks=True).stream(frames)]
    for (x, y, width, height), found in zip(PAIR, sorted(rows, key=lambda row: row.box.x1), strict=True):
        true = np.zeros((HEIGHT, WIDTH), bool)
        true[y : y + height, x : x + width] = True
        assert (found.mask & true).sum() / (found.mask | true).sum() > 0.75
        whole = cv2.resize(np.asarray(found.raw_map, np.float32), (WIDTH, HEIGHT))
        assert whole[true].mean() > 0.6
        assert whole[:, 0].mean() < 0.3


def test_a_threshold_that_was_given_is_used_as_it_is():
    model = localizer_of(RedNetwork())
    logits = np.zeros((1, 2), np.float32)
    assert model.settings.threshold_of(logits) == [pytest.approx(1.4 * 0.4)]
    assert model.with_options(threshold=0.3).settings.threshold_of(logits) == [0.3]
    assert model.with_options(looks=1).settings.threshold_of(logits) == [0.4]
    assert model.with_options(instances=False).settings.threshold_of(logits) == [0.4]


def test_parts_cover_the_map_and_overlap():
    covered = np.zeros((SIDE, SIDE), int)
    for x, y, side in four_parts(SIDE):
        covered[y : y + side, x : x + side] += 1
    assert covered.min() == 1
    assert covered[SIDE // 2, SIDE // 2] == 4
    assert four_parts(10) == [Square(0, 0, 6), Square(4, 0, 6), Square(0, 4, 6), Square(4, 4, 6)]


def test_of_equal_objects_the_best_stays_and_faint_ones_go():
    def found(box, score):
        return Found(np.array(box, float), score)

    best, same, other, faint = (
        found((0, 0, 10, 10), 0.6),
        found((0, 0, 10, 8), 0.5),
        found((20, 0, 30, 10), 0.19),
        found((40, 0, 50, 10), 0.17),
    )
    assert distinct([faint, same, other, best]) == [best, other]
    assert distinct([]) == []
