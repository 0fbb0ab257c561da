"""Several processes, as torchrun starts them, train as one does: every part of a step, whole runs, and their ends."""

import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from colocam.errors import ColocamError
from colocam.training.distributed import joined
from colocam.utils.device import place
from colocam.utils.extras import __version__
from tests.helpers import shared_step
from tests.helpers.run_files import journal

WAYS = {
    "sgd": ("classifier.label_smoothing=0.1", "classifier.jitter=0.3"),
    "logistic": ("classifier.fit=logistic",),
}
FAST = ("classifier.epochs=1", "localizer.epochs=1", "localizer.lr=0.01", "classifier.batch=5", "localizer.batch=9")


@pytest.fixture(scope="module")
def train(processes, collection, frame_cache, tiny_training):
    """``train(out, world, override, …, signals={})`` runs ``colocam train`` in several processes."""

    def run(out, world, *overrides, signals=None):
        sets = [word for override in (*FAST, *overrides) for word in ("--set", override)]
        command = ["train", collection.manifest, "--out", out, "--frames", frame_cache, *tiny_training, *sets]
        return processes(world, "tests.helpers.forked_processes:command_line", *command, signals=signals)

    return run


@pytest.fixture(scope="module")
def parts(processes, tmp_path_factory):
    """What each of three processes computes of one step; their shares have 1, 2 and 2 sequences."""
    folder = tmp_path_factory.mktemp("parts")
    codes, err = processes(3, "tests.helpers.shared_step:save_parts", folder)
    assert codes == [0, 0, 0], err
    return [torch.load(folder / f"{rank}.pt") for rank in range(3)]


@pytest.fixture(scope="module")
def whole():
    return shared_step.all_parts(shared_step.INDICES)


def close(found, expected, tolerance=1e-6):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def test_a_step_is_divided_between_sequences(parts):
    assert [part["rows"] for part in parts] == [(0, 3), (3, 6), (6, 12)]
    assert [part["device"] for part in parts] == ["cpu"] * 3
    with pytest.raises(ValueError, match="5 sequences cannot be divided into 6 parts"):
        shared_step.INDICES.share(0, 6)


@pytest.mark.parametrize("name", shared_step.FORMULAS)
def test_the_parts_of_a_loss_add_up_to_the_loss_and_have_its_gradient(parts, whole, name):
    value, gradient = whole["losses"][name]
    close(sum(part["losses"][name][0] for part in parts), value)
    close(torch.cat([part["losses"][name][1] for part in parts]), gradient)


@pytest.mark.parametrize("name", ["plain", "with an activation"])
def test_batch_norms_see_all_frames(parts, whole, name):
    """Their own outputs and gradients, the sum of the gradients of weights, and the same state everywhere."""
    per_frame, of_weights, state = whole["norms"][name]
    for index, expected in enumerate(per_frame):
        close(torch.cat([part["norms"][name][0][index] for part in parts]), expected, 1e-5)
    for index, expected in enumerate(of_weights):
        close(sum(part["norms"][name][1][index] for part in parts), expected, 1e-5)
    for part in parts:
        close(part["norms"][name][2], state, 1e-5)


def test_a_step_that_is_broken_in_one_process_is_skipped_in_all(parts, whole):
    weights, losses = whole["steps"]
    assert losses.isfinite().tolist() == [True, False, True]
    for part in parts:
        close(part["steps"][0], weights, 1e-5)
        torch.testing.assert_close(part["steps"][1], losses, rtol=1e-5, atol=0, equal_nan=True)


def test_decisions_are_common(parts):
    assert [part["any"] for part in parts] == [[True, False]] * 3
    assert [part["first"] for part in parts] == [0, 1, 2]
    for part in parts:
        same, different = part["same"]
        assert same is None
        assert different.startswith("the processes of this training do not see the same seeds: run the same command")
    failed = "the first process of this training failed: see its message"
    assert [part["alone"] for part in parts] == ["the disk is full", failed, failed]
    assert [part["stopped"] for part in parts] == ["stopped in decoding", "stopped", "stopped"]


def differences(run: Path, other: Path) -> dict[str, float]:
    """Largest difference of any weight of each phase's best checkpoint."""
    found = {}
    for phase in ("classifier", "colocam"):
        (mine,), (theirs,) = ((folder / phase).glob("best-*.safetensors") for folder in (run, other))
        a, b = load_file(mine), load_file(theirs)
        assert a.keys() == b.keys()
        found[phase] = max(float((a[name] - b[name]).abs().max()) for name in a)
    return found


@pytest.fixture(scope="module")
def pairs(train, tmp_path_factory):
    """``pairs(name)``: runs of one and of two processes. Neither 5 frames nor 3 sequences can be halved."""
    folder, made = tmp_path_factory.mktemp("pairs"), {}

    def get(name):
        if name not in made:
            made[name] = folder / f"{name}-1", folder / f"{name}-2"
            for world, out in enumerate(made[name], start=1):
                codes, err = train(out, world, *WAYS[name])
                assert codes == [0] * world, err
                assert err.count("trained: ") == 1
                expected = ("fewer than 10 videos", "the class is right in")  # of these few frames
                warned = [line for line in err.splitlines() if "warning: " in line and expected[1] not in line]
                assert sum(expected[0] in line for line in warned) == 1  # the first process alone reports
                assert sum(expected[0] not in line for line in warned) == (name == "logistic")
        return made[name]

    return get


@pytest.mark.parametrize("name", WAYS)
def test_two_processes_give_the_model_of_one(pairs, name):
    one, two = pairs(name)
    assert max(differences(one, two).values()) <= 1e-5
    for mine, theirs in zip(journal(two), journal(one), strict=True):
        assert mine.keys() == theirs.keys()
        assert {key: mine[key] for key in ("phase", "event", "epoch", "step")}.items() <= theirs.items()
        for key in mine.keys() - {"phase", "event"}:
            assert mine[key] == pytest.approx(theirs[key], rel=1e-4, abs=1e-6)
    names = [{str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()} for run in (one, two)]
    assert names[0] == names[1]


def test_killed_stopped_and_continued_it_ends_as_an_undisturbed_run(pairs, train, tmp_path):
    """Each process is killed once; Ctrl-C reaches one of them, and both stop after the same step."""
    run, way = tmp_path / "run", WAYS["sgd"]
    codes, err = train(run, 2, *way, signals={"1": [signal.SIGKILL, 2]})
    assert codes == [1, -signal.SIGKILL]
    assert "error: another process of this training ended or does not answer" in err
    assert "Traceback" not in err
    codes, err = train(run, 2, *way, signals={"1": [signal.SIGINT, 1]})
    assert codes == [130, 130]
    assert err.count(f"stopped in classifier after step 1: run the same command again to continue {run}") == 1
    codes, err = train(run, 2, *way, signals={"0": [signal.SIGKILL, 2]})
    assert codes == [-signal.SIGKILL, 1]
    assert "classifier: continuing after step 1 of 2" in err
    codes, err = train(run, 2, *way)
    assert codes == [0, 0], err
    undisturbed = pairs("sgd")[1]
    assert differences(run, undisturbed) == {"classifier": 0.0, "colocam": 0.0}
    assert journal(run) == journal(undisturbed)


def test_too_many_processes_for_a_batch_are_refused(train, tmp_path):
    codes, err = train(tmp_path / "run", 4)
    assert codes == [1] * 4
    assert "error: localizer.batch (9) has fewer sequences of 3 frames than there are processes (4)" in err
    assert not (tmp_path / "run").exists()


def test_torchrun_starts_the_command(processes):
    words = "--nproc-per-node", "2", "-m", "colocam", "--version"
    codes, said = processes(1, "tests.helpers.forked_processes:torchrun", *words)
    assert codes == [0]
    assert said.count(f"colocam {__version__}") == 2


def test_places_of_processes(monkeypatch):
    assert place() == (0, 1, 0)
    for name, value in {"WORLD_SIZE": "4", "RANK": "3", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    assert place() == (3, 4, 1)
    with pytest.raises(ColocamError, match="device must be cpu or cuda when several processes train, got cuda:1"):
        joined("cuda:1").__enter__()
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(ColocamError, match=r"the processes cannot connect: start them with torchrun \(.*MASTER_ADDR"):
        joined("cpu").__enter__()
    monkeypatch.delenv("RANK")
    with pytest.raises(ColocamError, match="start with torchrun, or unset WORLD_SIZE"):
        place()
