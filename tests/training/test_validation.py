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
from colocam.data.frame_cache import ROW, CachedClip
from colocam.data.samples import spread_samples
from colocam.maps.mapper import decoder_mapper
from colocam.models import Classifier, LocalizerNet, foreground
from colocam.temporal.presence import calibrate
from colocam.training.validation import LEAST_BACKGROUND, THRESHOLDS, Validator, background_peaks
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
    found = Validator(samples, None, TAGS, SIZES, CPU).classifier(net.classifier)
    loss = float(F.cross_entropy(logits, samples.classes))
    assert found.scores == {"best": pytest.approx(-loss, rel=1e-5)}
    assert found.values["loss"] == pytest.approx(loss, rel=1e-5)
    right = [int(row.argmax()) == int(c) for row, c in zip(logits, samples.classes, strict=True)]
    assert found.values["accuracy"] == pytest.approx(sum(right) / len(right))


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


def background_by_hand(cam):
    """Largest value among places whose eight neighbours, too, do not exceed Otsu's threshold; None if there are few."""
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


def test_a_constant_map_has_no_background():
    peaks, background = background_peaks(torch.full((2, 5, 5), 3.0))
    assert peaks.tolist() == [3, 3]
    assert background.isnan().all()


def test_presence_is_calibrated_on_peaks_against_the_background_of_the_same_frames(net, samples, frames):
    maps = extract("cam", net.classifier, frames, samples.classes)
    peaks, background = (part.numpy() for part in background_peaks(maps))
    found = Validator(samples, None, TAGS, SIZES, CPU).presence(net.classifier)
    assert found == pytest.approx(calibrate(peaks, background[np.isfinite(background)]), rel=1e-4, abs=1e-6)
