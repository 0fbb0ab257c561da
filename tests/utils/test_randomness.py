"""Random numbers depend on their arguments and on nothing else."""

import torch

from colocam.utils.tensors import generator


def draw(*arguments):
    return torch.randint(2**62, (4,), generator=generator(*arguments)).tolist()


def test_the_same_arguments_draw_the_same_whatever_happened_before():
    before = draw(3, "seeds", 17)
    torch.manual_seed(1)
    torch.rand(100)
    draw(3, "frames", 17)
    assert draw(3, "seeds", 17) == before


def test_every_argument_matters():
    counters = ((0, 0), (0, 1), (1, 0), (1, 1), (0, 2**33))
    streams = [draw(s, p, *c) for s in (0, 1, 2**40, 2**63 - 1) for p in ("seeds", "frames") for c in counters]
    assert len({tuple(s) for s in streams}) == len(streams)


def test_neighbouring_steps_are_not_alike():
    means = torch.stack([torch.rand(200, generator=generator(0, "step", step)) for step in range(200)])
    pairs = torch.corrcoef(means)
    assert pairs.fill_diagonal_(0).abs().max() < 0.4  # 19,900 pairs of 200 numbers: 6 standard deviations are 0.42
    assert abs(float(means.mean()) - 0.5) < 0.01
