"""Change models: safetensors files and ONNX graphs."""

import struct
from random import Random

import numpy as np
import onnx
from onnx import numpy_helper

from tests.fuzz.hostile_values import INTEGERS, text
from tests.fuzz.mutate_bytes import mutated_bytes
from tests.fuzz.mutate_text import mutated_text

OPERATORS = ("Relu", "Identity", "Sigmoid", "Neg", "Transpose", "Shape", "Cast", "ReduceMax", "Loop", "Nothing", "Exp")
TYPES = (onnx.TensorProto.FLOAT, onnx.TensorProto.UINT8, onnx.TensorProto.INT64, onnx.TensorProto.STRING)


def mutated_safetensors(data: bytes, random: Random) -> bytes:
    """Another header (names, types, shapes, offsets), values that are not finite, or changed bytes."""
    kind = random.random()
    if kind < 0.25:
        return mutated_bytes(data, random)
    length = int.from_bytes(data[:8], "little")
    header, body = data[8 : 8 + length], data[8 + length :]
    if kind < 0.45:
        values = np.frombuffer(body[: len(body) // 4 * 4], np.float32).copy()
        places = [random.randrange(len(values)) for _ in range(random.choice((1, len(values))))]
        values[places] = random.choice((np.nan, np.inf, -1.0, 0.0, 1e30))
        return data[: 8 + length] + values.tobytes() + body[len(body) // 4 * 4 :]
    header = mutated_text(header, random)
    return struct.pack("<Q", len(header)) + header + body


def mutated_onnx(data: bytes, random: Random) -> bytes:
    """One to three changes of the graph, its declared shapes and types, its constants or its metadata."""
    if random.random() < 0.15:
        return mutated_bytes(data, random)
    model = onnx.load_model_from_string(data)
    for _ in range(random.choice((1, 1, 2, 3))):
        random.choice(_EDITS)(model, random)
    return model.SerializeToString()


def _declaration(model: onnx.ModelProto, random: Random) -> None:
    """Another shape, type or name of an input or an output."""
    value = random.choice([*model.graph.input, *model.graph.output])
    dims, kind = value.type.tensor_type.shape.dim, random.random()
    if dims and kind < 0.4:
        dims[random.randrange(len(dims))].dim_value = random.choice((0, 1, 2, 12, 31, 33, 2**31, 2**62))
    elif kind < 0.5:
        dims.add().dim_value = random.choice((1, 7))
    elif kind < 0.75:
        value.type.tensor_type.elem_type = random.choice(TYPES)
    else:
        value.name = random.choice((f"{value.name}x", "", "maps", "frames", "logits"))


def _drop(model: onnx.ModelProto, random: Random) -> None:
    part = random.choice((model.graph.node, model.graph.output, model.graph.input, model.graph.initializer))
    if part:
        del part[random.randrange(len(part))]


def _rewire(model: onnx.ModelProto, random: Random) -> None:
    """Let an output be another value of the graph."""
    nodes = [node for node in model.graph.node if node.output]
    if nodes and model.graph.output:
        source = random.choice(nodes).output[0]
        wanted = random.choice(model.graph.output).name
        for node in model.graph.node:
            node.output[:] = [f"{one}_old" if one == wanted else one for one in node.output]
        model.graph.node.append(onnx.helper.make_node("Identity", [source], [wanted]))


def _reshape(model: onnx.ModelProto, random: Random) -> None:
    """Let an output have another shape: a slice, a sum or a transposition of it."""
    if not model.graph.output:
        return
    value = random.choice(model.graph.output)
    for node in model.graph.node:
        node.output[:] = [f"{one}_old" if one == value.name else one for one in node.output]
    kind = random.choice(("Transpose", "Flatten", "Squeeze", "Shape", "Exp", "Log", "Neg", "Not", "SequenceConstruct"))
    model.graph.node.append(onnx.helper.make_node(kind, [f"{value.name}_old"], [value.name]))
    if random.random() < 0.7:
        value.type.tensor_type.ClearField("shape")


def _constant(model: onnx.ModelProto, random: Random) -> None:
    if not model.graph.initializer:
        return
    one = random.choice(model.graph.initializer)
    kind = random.random()
    if kind < 0.3 and one.dims:
        one.dims[random.randrange(len(one.dims))] = random.choice([value for value in INTEGERS if value < 2**63])
    elif kind < 0.4:
        one.data_type = random.choice(TYPES)
    elif kind < 0.5:
        one.data_location = onnx.TensorProto.EXTERNAL
        one.external_data.add(key="location", value=random.choice(("../secret", "/etc/passwd", "video.mp4", "")))
    else:
        values = numpy_helper.to_array(one).copy()
        values[...] = random.choice((0, 1, -1, 2**31 - 1, np.nan, np.inf)) if values.dtype.kind == "f" else -1
        one.CopyFrom(numpy_helper.from_array(values, one.name))


def _attribute(model: onnx.ModelProto, random: Random) -> None:
    nodes = [node for node in model.graph.node if node.attribute]
    if not nodes:
        return
    attribute = random.choice(random.choice(nodes).attribute)
    if attribute.ints:
        attribute.ints[random.randrange(len(attribute.ints))] = random.choice((0, -1, 2, 100, 2**31, 2**62))
    else:
        attribute.i = random.choice((0, -1, 2, 2**31))


def _operator(model: onnx.ModelProto, random: Random) -> None:
    if model.graph.node:
        random.choice(model.graph.node).op_type = random.choice(OPERATORS)


def _card(model: onnx.ModelProto, random: Random) -> None:
    for entry in model.metadata_props:
        if entry.key == "colocam.card":
            changed = mutated_text(entry.value.encode(), random)
            entry.value = changed.decode("utf-8", "replace")


def _versions(model: onnx.ModelProto, random: Random) -> None:
    model.ir_version = random.choice((0, 1, 9, 99, 2**40))
    if model.opset_import:
        model.opset_import[0].version = random.choice((0, 1, 7, 17, 99, -1))
        model.opset_import[0].domain = random.choice(("", "", text(random).encode("utf-8", "replace").decode()))


_EDITS = (
    *[_declaration] * 3,
    *[_reshape, _card] * 2,
    *(_drop, _rewire, _constant, _attribute, _operator, _versions),
)
