"""Workers on a Ray cluster of one machine, where Ray is installed: the same parts; a killed actor is replaced."""

import os
import sys
from collections import deque
from contextlib import closing

import pytest

from colocam.errors import ColocamError
from colocam.inference.engine import Model
from colocam.inference.label import Execution, label_videos
from colocam.inference.task import do_all
from colocam.integrations.ray_workers import RayWorkers
from tests.helpers.stub_task import StubTask


@pytest.fixture
def ray(monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # its processes import the stub by its name
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


@pytest.mark.usefixtures("ray")
def test_parts_are_those_of_one_machine(model, make_videos, tmp_path, capfd):
    videos = make_videos(tmp_path / "videos", 5)
    (videos / "bad.mp4").write_bytes(b"no video")
    for name, ray in (("there", "local"), ("here", None)):
        with pytest.raises(ColocamError, match="1 of 6 videos could not be labeled"):
            label_videos(model, videos, tmp_path / name, Execution(workers=2, ray=ray, limit=60.0, retries=1))
    there, here = (
        {path.name: path.read_bytes() for path in (tmp_path / name / "parts").rglob("*.parquet")}
        for name in ("there", "here")
    )
    assert len(here) == 5
    assert there == here
    assert capfd.readouterr().err.count("labeling: 15 frames in") >= 2


def test_an_actor_that_is_killed_is_replaced(ray, model, tmp_path):
    with closing(RayWorkers(Model(model), "local", 1, tmp_path / "memory", int, 60.0)) as pool:
        tasks = deque([StubTask("one", "words", tmp_path), StubTask("two", "signal SIGKILL", tmp_path)])
        outcomes = {task.name: outcome for task, outcome in do_all(pool, tasks)}
        assert (outcomes["one"].error, outcomes["two"].attempts) == (None, 2)
        assert "its worker crashed (signal SIGKILL)" in str(outcomes["two"].error)
        ray.kill(pool._actors[0])
        ((_, outcome),) = do_all(pool, deque([StubTask("three", "words", tmp_path)]))
        assert (outcome.error, outcome.attempts) == (None, 2)


@pytest.mark.usefixtures("ray")
def test_a_model_that_no_actor_can_load_ends_the_command(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"no model")
    pool = RayWorkers(Model(tmp_path / "model.onnx"), "local", 1, tmp_path / "memory", int, 60.0)
    with closing(pool), pytest.raises(ColocamError, match="onnxruntime cannot open"):
        list(do_all(pool, deque([StubTask("one", "words", tmp_path)])))
