"""The step of stage 2: what is recorded for a GPU treats each frame by itself, so steps of any size stay the same."""

import pytest
import torch

from colocam.config import load_config
from colocam.data.batches import spread_samples
from colocam.models import Classifier
from colocam.training.stage2 import localizer_task
from colocam.training.validation import Validator
from colocam.utils import cuda_graphs
from colocam.utils.cuda_graphs import Recorded, Recording
from lab.training_step import CLASSES, _cached_clips, _smooth_cams

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def parts(tiny, tmp_path_factory):
    """Configuration, classifier and data whose sequences are often shorter than n: steps of many sizes."""
    chosen = ["localizer.batch=6", "localizer.frames=3", "localizer.sampler=adjacent", "localizer.losses.coloc=0.5"]
    config = load_config(overrides=[*tiny, *chosen])
    clips = _cached_clips(tmp_path_factory.mktemp("clips"), config.frames.resize)[:12]
    torch.manual_seed(0)
    classifier = Classifier(config.backbone, len(CLASSES)).eval()
    validator = Validator(spread_samples(clips[:1], CLASSES, 1), None, CLASSES, config.frames, CPU)
    return config, classifier, clips, _smooth_cams(classifier, clips, config, CPU), validator


def make_task(parts):
    config, classifier, clips, cams, validator = parts
    return localizer_task(config, "colocam", classifier, clips, cams, validator)


def gradients(task, steps):
    """Terms and gradients of each step, with the weights as they are at the start."""
    found = []
    task.module.train()
    for step, indices in steps:
        task.module.zero_grad()
        terms = task.terms(indices, task.load(indices, step), step, 0)
        sum(terms.values()).backward()
        slopes = torch.cat([p.grad.flatten() for p in task.module.parameters()])
        found.append((len(indices.clips), {name: term.item() for name, term in terms.items()}, slopes))
    return found


def test_recorded_with_room_for_all_frames_the_step_stays_what_it_is(parts, monkeypatch):
    """The stand-in recomputes all rows, stale ones, too, at fixed places; the sizes of the steps differ."""
    plain = make_task(parts)
    steps = list(enumerate(indices for epoch in range(2) for indices in plain.plan(epoch)))
    expected = gradients(plain, steps)

    made = []

    def record(compute, inputs):
        outputs = compute(inputs)
        made.append({name: place.shape for name, place in inputs.items()})

        def replay():
            for place, value in zip(outputs, compute(inputs), strict=True):
                place.copy_(value)

        return Recording(inputs, outputs, replay)

    monkeypatch.setattr(cuda_graphs, "record", record)
    room_on_cpu = lambda compute, rows, _: Recorded(compute, rows, torch.device("cuda"))  # noqa: E731
    monkeypatch.setattr("colocam.training.stage2.Recorded", room_on_cpu)
    found = gradients(make_task(parts), steps)

    sizes = [size for size, *_ in expected]
    assert len(set(sizes)) > 2
    assert [size for size, *_ in found] == sizes
    assert len(made) == 1
    assert made[0]["frames"][0] == 6 >= max(sizes)
    for (_, terms, slopes), (_, other_terms, other_slopes) in zip(expected, found, strict=True):
        assert set(terms) == {"seeds", "crf", "size", "coloc"}
        assert other_terms == pytest.approx(terms, rel=1e-4)
        torch.testing.assert_close(other_slopes, slopes, rtol=1e-3, atol=1e-4 * float(slopes.abs().max()))


def test_the_seeds_of_a_step_depend_on_its_number_alone(parts):
    task = make_task(parts)
    indices = task.plan(0)[0]
    loaded = task.load(indices, 0)
    with torch.no_grad():
        first, other, again = (float(task.terms(indices, loaded, step, 0)["seeds"]) for step in (3, 4, 3))
    assert first == again != other
