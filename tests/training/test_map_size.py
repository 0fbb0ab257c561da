"""Maps that are smaller than the encoder's frames: network, colors, training, evaluation, localization."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from colocam import Localizer, load_config
from colocam.boxes import scale_boxes
from colocam.maps.postprocess import arrays_postprocess, postprocess, with_color_mean
from colocam.models import Classifier, LocalizerNet

SIDE = 32


@pytest.fixture(scope="module")
def run(train_into, tmp_path_factory):
    changes = ("frames.map_size=16", "localizer.color_mean=clip", "localizer.focus=true")
    return train_into(tmp_path_factory.mktemp("maps") / "run", *changes)


def test_a_decoder_that_ends_at_the_map_size_gives_what_is_otherwise_enlarged(tiny):
    config = load_config(overrides=tiny)
    torch.manual_seed(0)
    classifier, decoder = (
        Classifier(config.backbone, 3),
        config.localizer.decoder[1:],
    )  # ends at SIDE / 2
    small = LocalizerNet(classifier, decoder, map_size=SIDE // 2).eval()
    large = LocalizerNet(classifier, decoder).eval()
    large.load_state_dict(small.state_dict())
    frames = torch.randint(0, 256, (2, 3, SIDE, SIDE)).float()
    with torch.no_grad():
        found, whole = small(frames), large(frames)
    assert found.map_logits.shape == (2, 2, SIDE // 2, SIDE // 2)
    torch.testing.assert_close(found.class_logits, whole.class_logits)
    own = F.interpolate(found.map_logits, size=SIDE, mode="bilinear", align_corners=False)
    torch.testing.assert_close(own, whole.map_logits, rtol=1e-4, atol=1e-4)


def test_colors_are_means_of_squares_in_both_twins():
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (3, 16, 16, 3)).astype(np.uint8)
    maps = rng.random((3, 8, 8), np.float32)
    sequences = np.zeros(3, np.int64)
    means = frames.reshape(3, 8, 2, 8, 2, 3).astype(np.int64).sum((2, 4))
    colors = torch.from_numpy((means + 2) // 4).permute(0, 3, 1, 2).float()  # rounded half up
    expected = with_color_mean(colors, torch.from_numpy(maps), torch.zeros(3, dtype=torch.int64))
    tensors = torch.from_numpy(frames).permute(0, 3, 1, 2)
    found = postprocess(tensors, torch.from_numpy(maps), torch.zeros(3, dtype=torch.int64), None)
    torch.testing.assert_close(found, expected)
    np.testing.assert_allclose(arrays_postprocess(frames, maps, sequences, None), expected.numpy(), atol=1e-4)


def test_boxes_of_small_maps_are_in_pixels_of_the_video(run, collection):
    video = collection.videos / "cat" / "test-0.mp4"
    localizer = Localizer.load(run, "cpu", smooth="none")
    assert localizer.card.map_size == 16
    for found in localizer(video):
        assert found.heatmap.shape == (16, 16)
        assert found.box is not None
        x1, y1, x2, y2 = (int(side) for side in scale_boxes(np.array(found.box), (48, 40), (16, 16)).round())
        peak = np.unravel_index(found.heatmap.argmax(), (16, 16))
        # with the largest contour the box lies on the foreground, and its edges on the map's cells
        assert (found.heatmap[y1 : y2 + 1, x1 : x2 + 1] > localizer.settings.threshold * found.heatmap[peak]).any()
        assert 0 <= x1 < x2 <= 15
        assert 0 <= y1 < y2 <= 15
