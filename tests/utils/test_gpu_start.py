"""The driver starts while torch is imported: in a thread, and only where there is one."""

import ctypes
import gc
import sys
import threading

import pytest

from colocam.utils import gpu_start
from colocam.utils.device import without_collections


class Driver:
    """Stands in for libcuda: each function notes its call; ``failing`` is refused."""

    def __init__(self, failing=""):
        self.calls, self._failing = [], failing

    def __getattr__(self, name):
        def call(*_):
            self.calls.append(name)
            return 100 if name == self._failing else 0

        return call


@pytest.mark.parametrize(
    ("failing", "calls"),
    [("", ["cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain"]), ("cuInit", ["cuInit"])],
)
def test_a_context_is_made_where_there_is_a_gpu(monkeypatch, failing, calls):
    driver = Driver(failing)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: driver)
    assert gpu_start._make_context(0) is not bool(failing)
    assert driver.calls == calls


@pytest.mark.parametrize(("device", "index"), [(None, 0), ("cuda", 0), ("cuda:3", 3), ("cuda:x", 0)])
def test_the_gpu_that_was_asked_for_is_started(monkeypatch, device, index):
    asked, done = [], threading.Event()

    def make(number):
        asked.append(number)
        done.set()
        return False

    monkeypatch.setattr(gpu_start, "_make_context", make)
    gpu_start.start_gpu(device)
    assert done.wait(60)
    assert asked == [index]


def test_without_a_driver_nothing_is_imported(monkeypatch):
    def missing(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    monkeypatch.setitem(sys.modules, "triton", None)  # an import would fail
    gpu_start._start(0)


def test_python_looks_for_garbage_again_after_an_import():
    def import_module():
        with without_collections():
            assert not gc.isenabled()
            raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        import_module()
    assert gc.isenabled()
