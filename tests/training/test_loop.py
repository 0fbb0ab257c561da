"""The loop on a tiny task: its journal and checkpoints, steps whose loss is no number, damaged files."""

import json
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from colocam.config import Optimization
from colocam.data.batches import plan_frames
from colocam.errors import ColocamError
from colocam.training import loop
from colocam.training.loop import Journal, Task, Validation, fit
from colocam.utils.tensors import generator, load_checkpoint
from tests.helpers.run_files import journal

EPOCHS, STEPS = 3, 4


def make_task(*, broken=(), scores=None, epochs=EPOCHS):
    """Fit a small network with batch norm to noise that depends on the step, as augmentation does."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    settings = Optimization(epochs=epochs, batch=3, lr=0.01, schedule="cosine", weight_decay=0.01)

    def plan(epoch):
        return plan_frames([5, 5, 5, 5], per_clip=3, batch=3, window=1.0, seed=1, epoch=epoch)

    def load(indices, step):
        noise = torch.randn(3, 3, generator=generator(1, "noise", step))
        return {"input": indices.frames[:, None] + noise}

    def terms(indices, loaded, step, epoch):
        output = module(loaded["input"])
        fit_term = (output - indices.clips[:, None]).square().mean()
        penalty = 0.01 * output.abs().mean() * (torch.nan if step in broken else 1.0) * (epoch + 1)
        return {"fit": fit_term, "penalty": penalty}

    def validate(epoch):
        assert not module.training
        with torch.no_grad():
            error = float(module(torch.ones(2, 3)).square().mean())
        return Validation(scores[epoch] if scores else {"best": -error}, {"error": error, "threshold": 0.5})

    groups = [(list(module[:2].parameters()), 1.0), (list(module[2].parameters()), 2.0)]
    return Task("tiny", module, groups, settings, plan, load, terms, validate)


def train(folder, **changes):
    task = make_task(**changes)
    fit(task, folder / "tiny", Journal(folder / "metrics.jsonl"))
    return task


@pytest.mark.parametrize("broken", [(), (1, 5, 7)], ids=["finite", "some steps broken"])
def test_a_run_leaves_its_checkpoints_and_every_line(tmp_path, broken):
    task = train(tmp_path, broken=broken)
    found = journal(tmp_path)
    training = [line for line in found if line["event"] == "train"]
    assert [line["step"] for line in training] == list(range(EPOCHS * STEPS))
    assert [line["epoch"] for line in training] == [e for e in range(EPOCHS) for _ in range(STEPS)]
    for line in training:
        if line["step"] in broken:
            assert line["loss"] is None
        else:
            assert line["loss"] == pytest.approx(line["fit"] + line["penalty"], rel=1e-4)
    assert [line["step"] for line in found if line["event"] == "val"] == [STEPS * (e + 1) for e in range(EPOCHS)]
    tensors, state = load_checkpoint(tmp_path / "tiny", "last")
    assert (state["epoch"], state["batch"], state["step"]) == (EPOCHS, 0, EPOCHS * STEPS)
    assert state["journal"] == (tmp_path / "metrics.jsonl").stat().st_size
    for name, tensor in task.module.state_dict().items():
        assert torch.equal(tensors[f"weights.{name}"], tensor)


def test_a_loss_that_is_not_finite_contributes_no_gradient(tmp_path):
    """Step 2 is broken: the weights move by momentum and decay alone, as if its gradient were zero."""
    task = make_task(broken={2}, epochs=1)
    snapshots = []
    plain = task.terms

    def record(indices, loaded, step, epoch):
        snapshots.append({name: p.detach().clone() for name, p in task.module.named_parameters()})
        return plain(indices, loaded, step, epoch)

    recorded = replace(task, terms=record)
    (tmp_path / "run").mkdir()
    fit(recorded, tmp_path / "run" / "tiny", Journal(tmp_path / "run" / "metrics.jsonl"))
    found = journal(tmp_path / "run")
    assert found[2]["loss"] is None
    assert found[2]["fit"] is not None
    assert all(torch.isfinite(p).all() for p in task.module.parameters())

    twin = make_task(epochs=1)
    groups = [{"params": parameters, "factor": factor} for parameters, factor in twin.groups]
    optimizer = torch.optim.SGD(groups, lr=0.01, momentum=0.9, weight_decay=0.01, nesterov=True)
    for step, indices in enumerate(twin.plan(0)):
        for name, p in twin.module.named_parameters():
            torch.testing.assert_close(snapshots[step][name], p.detach(), rtol=1e-4, atol=1e-6)
        for group in optimizer.param_groups:
            group["lr"] = found[step]["lr"] * group["factor"]
        optimizer.zero_grad()
        sum(twin.terms(indices, twin.load(indices, step), step, 0).values()).backward()
        if step == 2:
            optimizer.zero_grad(set_to_none=False)
        optimizer.step()


def test_the_best_epoch_of_each_score_is_kept_and_the_first_of_equals(tmp_path):
    scores = [{"best": 1.0, "cam": 3.0}, {"best": 2.0, "cam": 3.0}, {"best": 1.5, "cam": 2.0}]
    train(tmp_path, scores=scores)
    _, best = load_checkpoint(tmp_path / "tiny", "best")
    _, cam = load_checkpoint(tmp_path / "tiny", "cam")
    assert (best["epoch"], best["score"], best["step"], best["threshold"]) == (1, 2.0, 2 * STEPS, 0.5)
    assert (cam["epoch"], cam["score"], cam["step"]) == (0, 3.0, STEPS)
    assert load_checkpoint(tmp_path / "tiny", "last")[1]["best"] == {"best": 2.0, "cam": 3.0}
    assert [line["cam"] for line in journal(tmp_path) if line["event"] == "val"] == [3.0, 3.0, 2.0]


def test_a_run_that_diverges_says_so(tmp_path):
    with pytest.raises(ColocamError, match=r"tiny diverged in epoch 2: lower its lr \(0\.01\)"):
        train(tmp_path, scores=[{"best": 1.0}, {"best": float("nan")}, {"best": 1.0}])
    assert load_checkpoint(tmp_path / "tiny", "best")[1]["epoch"] == 0


@pytest.mark.parametrize("seconds", [-1.0, 1e9], ids=["saved each step", "saved each epoch"])
def test_more_than_half_of_an_epoch_stops_the_run_with_advice(tmp_path, monkeypatch, seconds):
    monkeypatch.setattr(loop, "SECONDS_BETWEEN_SAVES", seconds)
    says = (
        r"tiny stopped in epoch 2: the loss was NaN or infinite \(term penalty\) in 3 of 4 steps: lower its lr \(0.01\)"
    )
    for _ in range(2):  # a second attempt ends at the same step
        with pytest.raises(ColocamError, match=says):
            train(tmp_path, broken={2, 4, 5, 7})
        broken = {line["step"] for line in journal(tmp_path) if line["event"] == "train" and line["loss"] is None}
        assert broken == {2, 4, 5, 7}  # the journal shows them
    assert load_checkpoint(tmp_path / "tiny", "best")[1]["epoch"] == 0


@pytest.mark.parametrize(("broken", "stops"), [(range(3, 5), False), (range(3, 6), True), ((2, 3, 5, 6), False)])
def test_many_in_a_row_stop_the_run_and_as_many_apart_do_not(tmp_path, monkeypatch, broken, stops):
    """Three in a row are too many here; the epoch has eight steps, so that half of them is not reached."""
    monkeypatch.setattr(loop, "MOST_IN_A_ROW", 2)
    task = make_task(broken=set(broken), epochs=1)
    longer = replace(task, plan=lambda epoch: [*task.plan(epoch), *task.plan(epoch + 1)])
    with pytest.raises(ColocamError, match=r"in 3 of 8 steps") if stops else nullcontext():
        fit(longer, tmp_path / "tiny", Journal(tmp_path / "metrics.jsonl"))


@pytest.mark.parametrize(
    "change",
    [{"epoch": None}, {"step": "3"}, {"batch": -1}, {"best": [1]}, {"journal": {}}, {"skipped": {"steps": -1}}],
)
def test_a_checkpoint_with_other_values_is_damaged(tmp_path, change):
    path = tmp_path / "tiny" / "last.json"
    train(tmp_path, epochs=1)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ColocamError, match=r"last\.json is damaged .*: delete .* to train this part again"):
        train(tmp_path, epochs=2)


def test_a_checkpoint_with_other_tensors_is_damaged(tmp_path):
    train(tmp_path, epochs=1)
    path = tmp_path / "tiny" / json.loads((tmp_path / "tiny" / "last.json").read_text())["weights"]
    tensors = load_file(path)
    save_file({name: value for name, value in tensors.items() if name != "weights.0.weight"}, path)
    with pytest.raises(ColocamError, match=r"last\.json is damaged") as caught:
        train(tmp_path, epochs=2)
    assert "\n" not in str(caught.value)


def test_a_journal_that_someone_shortened_or_removed_grows_no_zeros(tmp_path):
    written = Journal(tmp_path / "metrics.jsonl")
    written.rewind(1000)
    assert written.path.read_bytes() == b""
    written.path.write_text('{"step": 1}\n')
    written.rewind(1000)
    written.add("p", "train", 0, 2)
    written.flush()
    assert [line["step"] for line in journal(tmp_path)] == [1, 2]
