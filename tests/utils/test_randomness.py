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
