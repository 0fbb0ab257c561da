"""What a process does while it imports and runs a model."""

import gc

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
