"""Workers as processes, and as Ray actors where Ray is installed: films that end them cost only themselves."""

import os
import sys
from contextlib import closing
from pathlib import Path

import pytest

from colocam.corpus.coordinator import Coordinator, Limits
from colocam.corpus.films import Film
from colocam.corpus.items import Died, Item, Ready, Stop
from colocam.corpus.local_pool import LocalPool
from colocam.corpus.ray_pool import RayPool
from stub_labeller import StubSettings

WORDS = {
    "killed": "signal SIGKILL",
    "crash": "signal SIGSEGV",
    "exit": "exit",
    "hang": "hang",
    "once": "once",
    "unreadable": "unreadable",
    "bug": "bug",
    "threads": "threads",
    **{f"good-{index}": f"film {index}" for index in range(6)},
}
GOOD = {name: words.upper() for name, words in WORDS.items() if name.startswith(("good", "once"))}
GOOD["threads"] = "1 THREAD"  # parts must not depend on the number of cores


def run(pool, folder: Path):
    """Label the films; what was done and what was set aside."""
    done, failed = [], {}
    items = []
    for name, words in WORDS.items():
        path = folder / "films" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(words, encoding="ascii")
        items.append(Item(Film(name, path)))
    Coordinator(
        pool,
        2,
        Limits(1.0, 1),
        on_frames=[].append,
        on_done=lambda item, result: done.append((item.name, result.key)),
        on_failed=lambda item, key, reason, attempts: failed.update({item.name: (key, reason, attempts)}),
    ).run(items)
    return sorted(done), failed


def check(done, failed, folder: Path):
    assert done == sorted((name, f"key of {name}") for name in GOOD)
    assert {name: (folder / name).read_text(encoding="ascii") for name in GOOD} == GOOD
    assert sorted(failed) == ["bug", "crash", "exit", "hang", "killed", "unreadable"]
    assert {name: attempts for name, (_, _, attempts) in failed.items()} == {
        **dict.fromkeys(("bug", "crash", "exit", "hang", "killed"), 2),
        "unreadable": 1,
    }
    assert failed["bug"][1] == "ZeroDivisionError: division by zero"
    assert failed["unreadable"][1] == "cannot read it"
    assert failed["hang"][1] == "no progress for 1 s"


def test_processes(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    with closing(LocalPool(StubSettings(tmp_path))) as pool:
        done, failed = run(pool, tmp_path)
    check(done, failed, tmp_path)
    assert failed["killed"][:2] == ("key of killed", "its worker was ended by SIGKILL")
    assert failed["crash"][1] == "its worker was ended by SIGSEGV"
    assert failed["exit"][1] == "its worker ended with exit code 7"


class Broken:
    """Makes no labeller."""

    def __call__(self, _):
        raise OSError("no such model")


def test_a_model_that_cannot_be_loaded():
    with closing(LocalPool(Broken())) as pool:
        pool.start(0)
        assert pool.wait(60) == [(0, Stop("a worker cannot start: OSError: no such model"))]


def test_a_worker_ends_with_its_coordinator(tmp_path):
    """Its connection is closed, as the kernel does where the coordinator is killed."""
    with closing(LocalPool(StubSettings(tmp_path))) as pool:
        pool.start(0)
        assert pool.wait(60) == [(0, Ready())]
        process, connection = pool._workers[0]
        connection.close()
        process.join(60)
        assert process.exitcode == 0


@pytest.fixture
def ray(monkeypatch):
    ray = pytest.importorskip("ray")
    # Ray's processes import the stub by its name.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    yield ray
    ray.shutdown()


def test_actors(ray, tmp_path):
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    with closing(RayPool(StubSettings(tmp_path), "local")) as pool:
        assert pool.places == 2
        done, failed = run(pool, tmp_path)
    check(done, failed, tmp_path)
    assert "its actor or its node is gone" in failed["killed"][1]


@pytest.mark.usefixtures("ray")
def test_a_node_that_vanishes(tmp_path):
    """An actor runs on a second node, whose processes are killed; its successor waits until there is room."""
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    node = cluster.add_node(num_cpus=1)
    try:
        with closing(RayPool(StubSettings(tmp_path), cluster.address)) as pool:
            pool.start(0)
            assert messages_of(pool) == [(0, Ready())]
            (tmp_path / "film").write_text("hang", encoding="ascii")
            pool.submit(0, Item(Film("film", tmp_path / "film")))
            cluster.remove_node(node, allow_graceful=False)
            (worker, told) = messages_of(pool)[-1]
            assert worker == 0
            assert isinstance(told, Died)
            cluster.add_node(num_cpus=1)
            pool.start(0)
            assert messages_of(pool) == [(0, Ready())]
            (tmp_path / "film").write_text("good", encoding="ascii")
            pool.submit(0, Item(Film("film", tmp_path / "film")))
            while not (tmp_path / "film").read_text(encoding="ascii").isupper():
                pool.wait(1)
    finally:
        cluster.shutdown()


def messages_of(pool):
    """What the workers say next, without reports of progress."""
    for _ in range(120):
        told = [(worker, message) for worker, message in pool.wait(1.0) if isinstance(message, Ready | Died | Stop)]
        if told:
            return told
    raise AssertionError("no message in two minutes")
