"""CLIP-ES as a whole: what its options change, and what it leaves as it was."""

import json

import pytest
import torch

from colocam.cams import min_max
from colocam.cams.clip import BACKGROUND, ClipES, Refinement, attention_affinity, refine
from colocam.errors import ColocamError

CLASSES = torch.tensor([0, 1, 2, 0, 1])
OPTIONS = [
    {},
    {"background": BACKGROUND},
    {"background": BACKGROUND, "refine": Refinement()},
    {"refine": Refinement(layers=1, times=1)},
]


def nearly(found, expected):
    """Equal up to 1e-4 of each map's maximum."""
    scale = expected.amax((-2, -1), keepdim=True).clamp(min=1e-20)
    torch.testing.assert_close(found / scale, expected / scale, rtol=0, atol=1e-4)


@pytest.fixture(scope="module", params=OPTIONS, ids=lambda options: "+".join(options) or "plain")
def clip_es(request, checkpoint, tags):
    return ClipES.load(checkpoint, tags, **request.param)


@pytest.fixture(scope="module")
def plain(checkpoint, tags):
    return ClipES.load(checkpoint, tags)


def test_maps_of_a_batch(clip_es, frames):
    maps = clip_es(frames, CLASSES)
    assert maps.shape == (5, 4, 4)
    assert maps.dtype == torch.float32
    assert not maps.requires_grad
    assert float(maps.min()) >= 0
    assert (maps.amax((1, 2)) > 0).sum() >= 3


def test_a_batch_is_its_frames_one_by_one(clip_es, frames):
    alone = torch.cat([clip_es(frames[i : i + 1], CLASSES[i : i + 1]) for i in range(5)])
    nearly(clip_es(frames, CLASSES), alone)


def test_every_class_is_each_class_in_turn(clip_es, frames, tags):
    together = clip_es.every_class(frames)
    assert together.shape == (5, 3, 4, 4)
    for number in range(len(tags)):
        nearly(together[:, number], clip_es(frames, torch.full((5,), number)))


def test_average_is_the_mean_of_normalized_maps(clip_es, frames):
    expected = sum(min_max(clip_es(frames, torch.full((5,), number))) for number in range(3)) / 3
    torch.testing.assert_close(clip_es.average(frames), expected, rtol=0, atol=1e-3)


def test_frames_may_have_any_size_and_dtype(clip_es):
    frames = torch.randint(256, (2, 3, 50, 33), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    kept = frames.clone()
    maps = clip_es(frames, CLASSES[:2])
    assert maps.shape == (2, 7, 5)
    assert torch.equal(frames, kept)
    nearly(maps, clip_es(frames.float(), CLASSES[:2]))


def test_background_joins_the_softmax(checkpoint, plain, frames, tags):
    wide = ClipES.load(checkpoint, tags, background=BACKGROUND)
    assert plain.texts.shape == (3, 16)
    assert wide.texts.shape == (28, 16)
    torch.testing.assert_close(wide.texts[:3], plain.texts, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(min_max(wide(frames, CLASSES)), min_max(plain(frames, CLASSES)), atol=0.01)


def test_refinement_is_that_of_the_plain_maps(checkpoint, plain, frames, tags):
    options = Refinement(layers=2, rounds=4, threshold=0.3, times=3)
    refined = ClipES.load(checkpoint, tags, refine=options)
    attention = plain.encoder.view(frames, 2).attention
    expected = refine(plain(frames, CLASSES)[:, None], attention_affinity(attention, 4), 0.3, 3)[:, 0]
    nearly(refined(frames, CLASSES), expected)


def test_identity_names_all_that_matters(checkpoint, tags, tiny_clip, tmp_path):
    base = ClipES.load(checkpoint, tags).identity
    assert json.loads(json.dumps(base)) == base
    assert ClipES.load(checkpoint, list(tags)).identity == base
    others = [
        ClipES.load(checkpoint, tags[::-1]),
        ClipES.load(checkpoint, tags, background=["sky"]),
        ClipES.load(checkpoint, tags, refine=Refinement()),
        ClipES.load(checkpoint, tags, refine=Refinement(times=1)),
        ClipES.load(checkpoint, tags, template="{}"),
        ClipES.load(tiny_clip(tmp_path, seed=1), tags),
    ]
    keys = [json.dumps(one.identity) for one in others] + [json.dumps(base)]
    assert len(set(keys)) == 7


def test_one_class_alone_has_nothing_to_be_compared_with(checkpoint):
    with pytest.raises(ColocamError, match="give more tags or a list of background names"):
        ClipES.load(checkpoint, ["cat"])
    with pytest.raises(ColocamError, match="give more tags or a list of background names"):
        ClipES.load(checkpoint, ["sky"], background=["sky"])
    assert ClipES.load(checkpoint, ["cat"], background=["sky"]).tags == ("cat",)
    with pytest.raises(ColocamError, match="give more tags"):
        ClipES.load(checkpoint, [], background=BACKGROUND)


@pytest.mark.parametrize("wrong", [torch.tensor([0, 1, 2, 3, 0]), torch.tensor([0, -1, 2, 1, 0])])
def test_classes_that_do_not_exist(checkpoint, frames, tags, wrong):
    clip_es = ClipES.load(checkpoint, tags, background=BACKGROUND)  # 3 would be the first of the background
    with pytest.raises(ColocamError, match="must be in 0–2"):
        clip_es(frames, wrong)


def test_one_class_per_frame(plain, frames):
    with pytest.raises(ColocamError, match="one class for each of the 5 frames"):
        plain(frames, CLASSES[:3])
