"""A loss that nobody at colocam has thought of: the total variation of the maps."""

import json

import pytest
import torch
from torch import nn

from colocam.errors import ColocamError
from colocam.losses import LOSSES, Loss, StepTensors, Term


class TotalVariation(nn.Module):
    """Mean difference between neighboring pixels of the maps."""

    def forward(self, step: StepTensors) -> torch.Tensor:
        rows, columns = step.maps.diff(dim=1), step.maps.diff(dim=2)
        return rows.abs().mean() + columns.abs().mean()


TERM = Term("variation", 0.5, TotalVariation())


def test_from_python_it_is_the_same_term(monkeypatch, fit, trained, train_into, tmp_path):
    run = fit(terms=[TERM])
    monkeypatch.setitem(LOSSES, "variation", Loss("Total variation", lambda _: TotalVariation()))
    named = train_into(tmp_path / "named", "localizer.losses.extra={variation: 0.5}")
    mine, same, without = ((folder / "model.safetensors").read_bytes() for folder in (run, named, trained))
    assert mine == same != without
    environment = json.loads((run / "environment.json").read_text(encoding="utf-8"))
    assert environment["terms"] == {"variation": 0.5}


def test_the_tensors_of_a_step(fit):
    seen = []

    def look(step: StepTensors):
        seen.append(step)
        return step.maps.mean()

    fit("localizer.epochs=2", "localizer.batch=6", "localizer.frames=3", terms=[Term("look", 1.0, look)])
    assert {step.epoch for step in seen} == {0, 1}
    for step in seen:
        assert step.frames.shape == (len(step.maps), 3, 32, 32)
        assert step.frames.max() > 1
        torch.testing.assert_close(step.maps, step.logits.softmax(1)[:, 1])
        assert step.maps.requires_grad
        assert set(step.labels.unique().tolist()) <= {0, 1, 255}
        assert step.sequences.tolist() == sorted(step.sequences.tolist())
        assert step.sequence_count == int(step.sequences.max()) + 1


@pytest.mark.parametrize(
    ("later", "says"),
    [
        ([], r"with the added loss terms variation \(0\.5\), not none: pass the same 'terms' to colocam\.train"),
        ([TERM._replace(weight=0.25)], r"variation \(0\.5\), not variation \(0\.25\)"),
        ([TERM._replace(name="other")], r"variation \(0\.5\), not other \(0\.5\)"),
    ],
)
def test_a_run_goes_on_only_with_the_terms_it_began_with(later, says, fit):
    shorter = ["methods=[]", "classifier.epochs=1"]
    for _ in range(2):
        fit(*shorter, terms=[TERM])
    with pytest.raises(ColocamError, match=says):
        fit(*shorter, terms=later)


@pytest.mark.parametrize("name", ["crf", "loss", "lr", "twice"])
def test_names_that_are_taken(name, fit, tmp_path):
    with pytest.raises(ColocamError, match=f"terms: the name '{name}' is taken"):
        fit(terms=[TERM._replace(name=name), TERM._replace(name="twice")])
    assert not (tmp_path / "run").exists()


def test_a_term_that_is_no_scalar(fit):
    with pytest.raises(ColocamError, match=r"the loss term 'maps' must return a scalar, got shape \("):
        fit(terms=[Term("maps", 1.0, lambda step: step.maps)])


def test_a_term_that_is_nan_now_and_then_is_skipped_and_reported(fit, journal, capsys):
    calls = []

    def sometimes(step: StepTensors):
        calls.append(step)
        return step.maps.mean() * (float("nan") if len(calls) == 2 else 1.0)

    run = fit(terms=[Term("sometimes", 0.1, sometimes)])
    said = "colocam, epoch 1: the loss was NaN or infinite (term sometimes) in 1 steps, which were skipped"
    assert said in capsys.readouterr().err
    assert [line.get("skipped") for line in journal(run, "colocam", "val")] == [1, None]
    assert [line["loss"] is None for line in journal(run, "colocam")][:3] == [False, True, False]
