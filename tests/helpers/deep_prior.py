"""A prior with the parts of a real one, written as an ONNX file."""

from pathlib import Path

import numpy as np


def write_deep_prior(path: Path, seed: int = 0) -> Path:
    """It is as salient-object networks are: batch norms, and maps enlarged to the size of others; two outputs."""
    import onnx  # noqa: PLC0415 - slow to import
    from onnx import helper, numpy_helper  # noqa: PLC0415

    random = np.random.default_rng(seed)

    def given(name, *shape):
        return numpy_helper.from_array(random.normal(0, 0.5, shape).astype(np.float32), name)

    def node(kind, inputs, output, **attributes):
        return helper.make_node(kind, inputs.split(), [output], **attributes)

    norm = [given("gamma", 4), given("beta", 4), given("mu", 4), numpy_helper.from_array(np.ones(4, np.float32), "var")]
    values = [
        given("W1", 4, 3, 3, 3),
        given("b1", 4),
        given("W2", 6, 4, 3, 3),
        given("b2", 6),
        given("W3", 1, 10, 1, 1),
    ]
    numbers = {"zero": 0, "two": 2, "four": 4}
    values += [numpy_helper.from_array(np.array([number]), name) for name, number in numbers.items()]
    values += [numpy_helper.from_array(np.full((1, 1, 1, 1), 0.3, np.float32), "shift")]
    values += [numpy_helper.from_array(np.zeros(0, np.float32), "none")]
    nodes = [
        node("Conv", "image W1 b1", "a", pads=[1, 1, 1, 1]),
        node("BatchNormalization", "a gamma beta mu var", "n"),
        node("Relu", "n", "r"),
        node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "p W2 b2", "c", pads=[1, 1, 1, 1]),
        node("Relu", "c", "d"),
        node("Shape", "r", "whole"),
        node("Shape", "d", "half"),
        node("Slice", "whole two four zero", "sides"),
        node("Slice", "half zero two zero", "rows"),
        node("Concat", "rows sides", "size", axis=0),
        node("Resize", "d none none size", "e", mode="linear", coordinate_transformation_mode="half_pixel"),
        node("Concat", "e r", "f", axis=1),
        node("Conv", "f W3", "g"),
        node("Add", "g shift", "h"),
        node("Sigmoid", "h", "map"),
        node("Sigmoid", "d", "other"),
    ]
    shapes = {"image": [1, 3, 16, 24], "map": [1, 1, 16, 24], "other": [1, 6, 8, 12]}
    tensors = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    graph = helper.make_graph(nodes, "net", tensors[:1], tensors[1:], [*values, *norm])
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)]), path)
    return path
