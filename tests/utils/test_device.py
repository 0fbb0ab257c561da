"""What a process does while it imports and runs a model."""

import gc
import platform
import subprocess
import sys

import numpy as np
import pytest
from onnx import TensorProto, helper, save
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, RuntimeException

from colocam.utils.device import open_session, without_collections


def test_the_allocator_of_onnxruntime_prints_nothing(tmp_path, capfd):
    """Its messages come from a logger that the options of a session do not reach."""
    shape = helper.make_tensor("shape", TensorProto.INT64, [1], [2**62])
    graph = helper.make_graph(
        [helper.make_node("Expand", ["x", "shape"], ["y"])],
        "too large",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [shape],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    save(model, tmp_path / "large.onnx")
    session = open_session(tmp_path / "large.onnx", "the model")
    with pytest.raises((Fail, RuntimeException), match="Expand"):
        session.run(None, {"x": np.zeros(1, np.float32)})
    assert capfd.readouterr().err == ""


def test_python_looks_for_garbage_again_after_an_import():
    def import_module():
        with without_collections():
            assert not gc.isenabled()
            raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        import_module()
    assert gc.isenabled()


FAULTS = """
import resource, sys
import numpy as np
from colocam.utils.device import keep_activations
if sys.argv[1] == "keep":
    keep_activations()
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(96 * 2**20, np.uint8)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="an option of glibc")
def test_memory_of_activations_is_not_asked_of_the_kernel_again():
    """Of a third array of 96 MiB, all pages are new to a process that gives memory back, none to one that keeps it."""
    faults = {
        how: int(subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, text=True, check=True).stdout)
        for how in ("keep", "give back")
    }
    assert faults["keep"] < 10
    assert faults["give back"] > 40
