"""The validator: what it says of a model, against the parts put together by hand."""

import json

import cv2
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from colocam.boxes import largest_boxes
from colocam.boxes.iou import iou
from colocam.boxes.quantize import tags_only_threshold
from colocam.cams import extract, full_size
from colocam.config import load_config
from colocam.config.schema import Frames
from colocam.data.batches import spread_samples
from colocam.data.frame_cache import ROW, CachedClip
from colocam.maps.mapper import Mapper, decoder_mapper
from colocam.models import Classifier, LocalizerNet, foreground
from colocam.temporal.presence import calibrate
from colocam.training.validation import LEAST_BACKGROUND, THRESHOLDS, Validator, background_peaks, color_growth
from colocam.types import Clip

TAGS, SIZE, CPU = ("cat", "dog"), 32, torch.device("cpu")
SIZES = Frames(resize=SIZE, crop=SIZE)


@pytest.fixture(scope="module")
def net(tiny):
    torch.manual_seed(3)
    config = load_config(overrides=tiny)
    return LocalizerNet(Classifier(config.backbone, 2), config.localizer.decoder).eval()


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clips")
    clips = []
    for name, tag, count in (("a", "cat", 3), ("b", "dog", 2), ("c", "dog", 2)):
        file = folder / f"{name}.rgb"
        rng = np.random.default_rng(len(clips))
        rng.integers(0, 256, (count, SIZE, SIZE, 3)).astype(np.uint8).tofile(file)
        rows = np.array([(i, 0.1 * i, SIZE, SIZE) for i in range(count)], ROW)
        clips.append(CachedClip(Clip(name, tag, "val", folder / name, name), file, SIZE, rows))
    return spread_samples(clips, TAGS, 10)


@pytest.fixture(scope="module")
def frames(samples):
    return torch.cat([frames for frames, _ in samples.batches(SIZE, CPU)])


def levels(maps):
    return (255 * maps).to(torch.uint8).numpy()


def corloc_by_hand(maps, boxes, classes):
    """CorLoc in percent at every threshold: mean over classes of the share of frames with IoU ≥ ½."""
    table = []
    for threshold in THRESHOLDS:
        found, there = largest_boxes(maps, float(threshold))
        hits = [
            bool(there[i]) and max(float(iou(found[i], box, inclusive=True)) for box in boxes[i]) >= 0.5
            for i in range(len(maps))
        ]
        table.append(np.mean([np.mean(np.array(hits)[classes == c]) for c in np.unique(classes)]))
    return 100 * np.array(table)


def true_boxes(maps):
    """Boxes that some thresholds find and others miss: those of the maps themselves at ½, except for one frame."""
    boxes, _ = largest_boxes(maps, 0.5)
    boxes[0] = (0, 0, 3, 3)
    return [box[None] for box in boxes]


def test_classifier_without_boxes(net, samples, frames):
    with torch.no_grad():
        logits = net.classifier(frames).logits
    validator = Validator(samples, None, TAGS, SIZES, CPU)
    found = validator.classifier(net.classifier)
    loss = float(F.cross_entropy(logits, samples.classes))
    assert found.scores == {"best": pytest.approx(-loss, rel=1e-5)}
    assert found.values["loss"] == pytest.approx(loss, rel=1e-5)
    right = (logits.argmax(1) == samples.classes).double()
    assert found.values["accuracy"] == pytest.approx(float(right.mean()))
    of_classes = [float(right[samples.classes == number].mean()) for number in range(2)]
    assert validator.accuracy(net.classifier) == pytest.approx(np.mean(of_classes))
    assert np.mean(of_classes) != pytest.approx(float(right.mean()))


@pytest.mark.parametrize("method", ["cam", "gradcam++", "layercam"])
def test_classifier_with_boxes_is_also_judged_by_its_cams(net, samples, frames, method):
    maps = levels(full_size(extract(method, net.classifier, frames, samples.classes), SIZE))
    boxes = true_boxes(maps)
    found = Validator(samples, boxes, TAGS, SIZES, CPU, method).classifier(net.classifier)
    by_hand = corloc_by_hand(maps, boxes, samples.classes.numpy())
    assert found.scores["cam"] == pytest.approx(by_hand.max())
    assert found.values["corloc"] == found.scores["cam"]
    assert found.scores["best"] == -found.values["loss"]
    assert by_hand.min() < by_hand.max()


def test_localizer_without_boxes_takes_the_last_epoch_and_the_maps_own_threshold(net, samples, frames):
    validator = Validator(samples, None, TAGS, SIZES, CPU)
    with torch.no_grad():
        maps = levels(foreground(net(frames).map_logits))
    for epoch in (0, 7):
        found = validator.localizer(decoder_mapper(net, "off", focus=False), epoch)
        assert found.scores == {"best": float(epoch)}
        assert found.values == {"threshold": pytest.approx(tags_only_threshold(maps))}


def test_localizer_with_boxes_takes_the_middle_of_the_best_thresholds(net, samples, frames):
    with torch.no_grad():
        maps = levels(foreground(net(frames).map_logits))
    boxes = true_boxes(maps)
    found = Validator(samples, boxes, TAGS, SIZES, CPU).localizer(decoder_mapper(net, "off", focus=False), 2)
    by_hand = corloc_by_hand(maps, boxes, samples.classes.numpy())
    best = THRESHOLDS[by_hand >= by_hand.max() - 1e-9]
    assert found.scores == {"best": pytest.approx(by_hand.max())}
    assert found.values["threshold"] == best[(len(best) - 1) // 2]
    assert found.values["corloc"] == found.scores["best"]
    assert json.dumps(found.values)  # plain numbers: they go into a checkpoint


def squares(*sides, peak=200):
    """8-bit maps with one bright square each, and a faint surrounding."""
    maps = np.full((len(sides), SIZE, SIZE), peak // 10, np.uint8)
    for one, side in zip(maps, sides, strict=True):
        one[2 : 2 + side, 2 : 2 + side] = peak
    return maps


@pytest.mark.parametrize(("completed", "plain", "want"), [(20, 10, 4.0), (10, 20, 0.25), (12, 12, 1.0)])
def test_growth_is_the_ratio_of_areas_where_all_frames_agree(completed, plain, want):
    assert color_growth(squares(*[completed] * 3), squares(*[plain] * 3), 0.25) == pytest.approx(want)


def test_growth_of_one_frame_does_not_outweigh_that_of_another():
    """A box of 16 times the area counts as much as one of a 16th, and a frame without foreground counts nothing."""
    assert color_growth(squares(24, 6), squares(6, 24), 0.25) == pytest.approx(1)
    completed, plain = squares(10, 24), squares(20, 6)
    plain[1] = 0
    assert color_growth(completed, plain, 0.25) == pytest.approx(0.25)
    assert color_growth(np.zeros_like(plain), np.zeros_like(plain), 0.25) == 1


@pytest.mark.parametrize("right", ["clip", "off"])
def test_boxes_decide_about_the_color_mean_where_there_are_some(samples, right):
    """The maps with color mean have their object on the left, those without on the right."""

    def mapper(color_mean, left):
        drawn = torch.zeros(1, SIZE, SIZE)
        drawn[:, 8:24, left : left + 12] = 1
        return Mapper(lambda frames, _: (drawn.expand(len(frames), -1, -1), None), color_mean)

    corner = 2 if right == "clip" else 18
    boxes = [np.array([[corner, 8, corner + 12, 24]], np.float32)] * len(samples)
    found = Validator(samples, boxes, TAGS, SIZES, CPU).localizer(mapper("clip", 2), 3, mapper("off", 18))
    assert found.scores == {"best": 100.0}
    assert found.values.keys() == {"threshold", "corloc", "color_mean"}
    assert found.values["color_mean"] == right


def background_by_hand(cam):
    """Largest value among places whose eight neighbors, too, do not exceed Otsu's threshold; None if there are few."""
    levels = np.floor(255 * (cam - cam.min()) / (cam.max() - cam.min())).astype(np.uint8)
    threshold, _ = cv2.threshold(levels.reshape(1, -1), 0, 255, cv2.THRESH_OTSU)
    above = levels > threshold
    rows, columns = cam.shape
    places = [
        (y, x)
        for y in range(rows)
        for x in range(columns)
        if not above[max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2].any()
    ]
    return max(cam[place] for place in places) if len(places) >= LEAST_BACKGROUND * cam.size else None


def test_the_background_is_what_lies_away_from_the_object():
    rng = np.random.default_rng(5)
    y, x = np.mgrid[:12, :12]
    objects = [40 * np.exp(-((y - 3) ** 2 + (x - c) ** 2) / s) for c, s in ((4, 4.0), (9, 9.0))]
    objects.append(np.where(x % 3 == 1, 40.0, 0.0))
    cams = np.stack([one + rng.normal(0, 1, (12, 12)) for one in objects]).astype(np.float32)
    peaks, background = background_peaks(torch.from_numpy(cams))
    assert peaks.tolist() == cams.max((1, 2)).tolist()
    wanted = [background_by_hand(one) for one in cams]
    assert wanted[0] is not None
    assert wanted[2] is None  # no place is away from it
    for found, by_hand in zip(background.tolist(), wanted, strict=True):
        assert np.isnan(found) if by_hand is None else found == by_hand
    assert background[0] < 6
    assert peaks[0] > 35


def test_presence_is_calibrated_on_peaks_against_the_background_of_the_same_frames(net, samples, frames):
    maps = extract("cam", net.classifier, frames, samples.classes)
    peaks, background = (part.numpy() for part in background_peaks(maps))
    found = Validator(samples, None, TAGS, SIZES, CPU).presence(net.classifier)
    assert found == pytest.approx(calibrate(peaks, background[np.isfinite(background)]), rel=1e-4, abs=1e-6)
