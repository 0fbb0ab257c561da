"""Rivals of the products: their rows and their errors."""

import importlib.metadata

import pytest
import torch

from colocam.losses.affinity.engine import gaussian_sum
from lab import measuring as timing
from lab.bench import affinity

CPU = torch.device("cpu")


def test_a_share_of_the_rows_is_scaled_and_checked(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    features, maps = torch.rand(400, 3, generator=generator) * 6, torch.rand(400, generator=generator)
    rows = torch.tensor([5, 399, 17, 100])
    # 1.1 of the truth, and W·1 wrong by a sign.
    wrong = torch.tensor([-1.0, 1.1])
    exact = gaussian_sum(features, torch.stack([torch.ones_like(maps), maps], dim=1))
    prepared = affinity.Prepared(lambda _: wrong * exact[rows], rows)
    monkeypatch.setattr(importlib.metadata, "version", lambda _package: "1.2")
    monkeypatch.setattr(affinity, "RIVALS", {"some": ("a sum", lambda *_: prepared)})
    monkeypatch.setattr(timing, "in_turn_ms", lambda *_: [2.0, 5.0])
    (row,) = affinity.compare("colour", features, maps, lambda _: None, 3)
    assert row["ms"] == pytest.approx(500)
    assert row["ratio"] == pytest.approx(250)
    assert row["share"] == pytest.approx(0.01)
    assert row["error_W1"] == pytest.approx(2)
    assert row["error_WS"] == pytest.approx(0.1)
    assert row["error_WS_scaled"] == pytest.approx(0, abs=1e-6)
    assert "1 % of the rows, scaled" in affinity.line(row)
    assert "ratio 250.0" in affinity.line(row)


@pytest.mark.parametrize("space", [False, True])
def test_features_are_those_of_our_product(monkeypatch, space):
    monkeypatch.setattr(affinity, "SIZE", 8)
    monkeypatch.setattr(affinity, "compare", lambda *arguments: arguments)
    name, features, maps, ours, _ = affinity._rivals(2 - space, CPU, space=space)
    frames = affinity.make_frames(2 - space, 8, "scene")[0]
    values = torch.stack([torch.ones_like(maps), maps], dim=1)
    if space:
        expected = affinity.dense_bilateral_product(frames, values.T.reshape(1, 2, 8, 8), 15.0, 100.0)[0].T
    else:
        expected = affinity.dense_color_product(frames.transpose(0, 1).flatten(1).T, values, 15.0)
    torch.testing.assert_close(gaussian_sum(features, values), expected, rtol=1e-5, atol=1e-6)
    assert ours(0).shape == (2 - space, 8, 8)
    assert name == ("crf 1 frame" if space else "colour n=2")
