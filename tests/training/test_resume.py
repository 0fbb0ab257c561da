"""Ctrl-C, a kill or a full disk at any moment: the same command goes on and ends where it would have ended anyway."""

import os
import signal
import socket
from contextlib import contextmanager
from pathlib import Path

import pytest

from colocam.data import read_catalogue
from colocam.errors import ColocamError, InterruptedRunError
from colocam.training import loop
from colocam.utils.tensors import load_checkpoint
from tests.helpers.run_files import learned_files


def assert_same(run: Path, reference: Path) -> None:
    mine, wanted = learned_files(run), learned_files(reference)
    assert mine.keys() == wanted.keys()
    assert [name for name in wanted if mine[name] != wanted[name]] == []


@pytest.fixture(scope="module")
def train(train_into):
    """``train(folder)`` trains what ``trained`` is."""
    return lambda folder: train_into(folder, "methods=[colocam, fcam]")


@pytest.fixture(scope="module")
def watched(processes):
    """``watched(arguments, folder, moment, signal)`` runs a real process to its end: exit code and stderr."""

    def run(arguments, folder, moment=0, number=signal.SIGINT):
        call = "tests.helpers.forked_processes:watched_command_line"
        (code,), err = processes(1, call, folder, moment, int(number), *arguments)
        return code, err

    return run


@pytest.fixture(scope="module")
def whole(watched, collection, frame_cache, tiny_training, tmp_path_factory):
    """An uninterrupted run of a real process: its folder, its command for another folder, and its number of events."""
    folder = tmp_path_factory.mktemp("whole") / "run"

    def command(out: Path) -> list[str]:
        return ["train", str(collection.manifest), "--out", str(out), "--frames", str(frame_cache), *tiny_training]

    code, err = watched(command(folder), folder)
    assert code == 0
    return folder, command, int(err.splitlines()[-1])


def test_a_run_stopped_after_every_single_step_ends_as_one_that_never_stopped(tmp_path, train, trained, monkeypatch):
    run, stops = tmp_path / "run", []
    monkeypatch.setattr(loop, "stop_requested", lambda: not (run / "fcam").exists())  # a phase like the one before
    while True:
        try:
            train(run)
        except InterruptedRunError as stop:
            stops.append(str(stop).split(":")[0])
            assert len(stops) < 100, "it does not get on"
            continue
        break
    assert len(stops) > len(set(stops))  # stopped also at ends of epochs, where no step is new
    phases = ("classifier", "colocam")
    assert {f"stopped in {phase} after step {k}" for phase in phases for k in range(1, 6)} <= set(stops)
    assert_same(run, trained)


@pytest.mark.parametrize("share", [0.25, 0.6])
def test_sigint_is_answered_with_one_line_and_the_same_command_goes_on(watched, whole, tmp_path, share):
    reference, command, events = whole
    run = tmp_path / "run"
    code, err = watched(command(run), run, round(share * events), signal.SIGINT)
    assert code == 130
    *said, last, _ = err.splitlines()
    assert said.count("stopping after this step and saving; press Ctrl-C again to stop immediately") == 1
    assert last.endswith(f": run the same command again to continue {run}")
    assert "Traceback" not in err
    assert not (run / "model.json").exists()
    phase = last.split()[2]
    saved = load_checkpoint(run / phase, "last")
    assert saved is not None
    assert last.startswith(f"stopped in {phase} after step {saved[1]['step']}: ")
    code, err = watched(command(run), run)
    assert code == 0, err
    assert_same(run, reference)


def test_sigint_before_training_began(watched, whole, tmp_path):
    _, command, _ = whole
    code, err = watched(command(tmp_path / "run"), tmp_path / "run", 2, signal.SIGINT)
    assert code == 130
    assert err.splitlines()[-2] == "stopped"
    assert not (tmp_path / "run" / "config.yaml").exists()


def test_a_run_killed_again_and_again_between_any_two_files_ends_as_one_that_was_not(watched, whole, tmp_path):
    reference, command, events = whole
    run = tmp_path / "run"
    for moment in (2, 9, 24, 33):
        code, err = watched(command(run), run, moment, signal.SIGKILL)
        assert code == -signal.SIGKILL, err
    code, err = watched(command(run), run)
    assert code == 0, err
    assert int(err.splitlines()[-1]) < events
    assert_same(run, reference)


def test_a_second_training_in_the_same_folder_is_refused(tmp_path, train, trained, monkeypatch):
    """While the first one trains; it then ends as if nothing had happened."""
    run, refused = tmp_path / "run", []
    step = loop.sgd_step

    def meanwhile(*arguments):
        if not refused:
            with pytest.raises(ColocamError) as error:
                train(run)
            refused.append(str(error.value))
        return step(*arguments)

    monkeypatch.setattr(loop, "sgd_step", meanwhile)
    train(run)
    ours = f"process {os.getpid()} on {socket.gethostname()}"
    assert refused == [f"{run} is in use by {ours}: wait until it ends, or choose another folder"]
    assert_same(run, trained)


def test_the_second_signal_in_a_run_still_says_how_to_continue(tmp_path, train, monkeypatch, capfd):
    def impatient(*_args):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(loop, "sgd_step", impatient)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(InterruptedRunError, match=r"^stopped: run the same command again to continue "):
        train(tmp_path / "run")
    assert signal.getsignal(signal.SIGINT) is before
    capfd.readouterr()


def test_a_signal_while_decoding_stops_there(tmp_path, collection, train_into, monkeypatch, capfd):
    decoded = []

    @contextmanager
    def stop_after_one(title, *_):
        def advance(clips=1, note=""):  # noqa: ARG001 - the signature of Advance
            if title == "decoding":
                if not decoded:  # two files may end in one look, and a second signal would mean "at once"
                    signal.raise_signal(signal.SIGINT)
                decoded.append(clips)

        yield advance

    monkeypatch.setattr("colocam.utils.progress._lines", stop_after_one)
    with pytest.raises(InterruptedRunError, match="stopped in decoding: run the same command"):
        train_into(tmp_path / "run", frames=None)
    assert len(decoded) < len(read_catalogue(collection.manifest).clips)
    assert list((tmp_path / "run" / "frames").glob("*.npy"))
    assert not (tmp_path / "run" / "metrics.jsonl").exists()
    capfd.readouterr()
