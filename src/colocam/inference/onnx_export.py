"""Write a trained model as one ONNX file: frames in; logits, probabilities, maps and threshold out; card as metadata.

A gradient CAM cannot be written this way, since it needs a backward pass; the decoder needs a forward pass only.
"""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from colocam.errors import ArgumentError, ColocamError, first_line
from colocam.inference.onnx_network import CARD, FRAMES, OUTPUTS, open_onnx
from colocam.models import LocalizerNet, foreground
from colocam.models.model_file import Model, load_model
from colocam.utils.extras import not_installed
from colocam.utils.files import atomic_path, refuse_replacing

if TYPE_CHECKING:
    import onnx


OPSET = 18
"""The oldest version that PyTorch writes without conversion; most runtimes can read it."""
MOST_BYTES = 2**31 - 2**20
"""A single ONNX file cannot be larger than 2 GiB."""
TOLERANCE = 1e-3
"""Largest difference from PyTorch's logits and maps; relative to the largest value where that exceeds 1."""
HALF_TOLERANCE = 1e-2
"""The same with weights of 16 bits, which PyTorch does not round again after it joined them with batch norms."""


class Graph(nn.Module):
    """What the file computes from (B, S, S, 3) uint8 RGB.

    Logits and probabilities (B, K), maps (B, h, w), peaks (B, K), LayerCAMs of the classes (B, K, h', w').
    """

    def __init__(self, net: LocalizerNet) -> None:
        super().__init__()
        self.net = net

    def forward(self, frames: Tensor) -> tuple[Tensor, ...]:
        """Run the network, whose first step normalises the frames."""
        logits, map_logits, peaks, activations = self.net(frames.permute(0, 3, 1, 2))
        return logits, logits.softmax(1), foreground(map_logits), peaks, activations


def export_onnx(run: str | Path, out: str | Path, *, half: bool = False) -> Path:
    """Write the model of a run folder to ``out``, a file that ends in ``.onnx``; it appears only when it is complete.

    An earlier model is replaced, another file never. The file is kept only if onnxruntime agrees with PyTorch within
    :data:`TOLERANCE`, or :data:`HALF_TOLERANCE`.

    Args:
        run: the run folder.
        out: the file.
        half: store kernels and matrices in 16 bits, half of the bytes. Runtimes compute in 32 bits all the same.
    """
    out = Path(out)
    if out.suffix.lower() != ".onnx" or out.is_dir():
        raise ArgumentError("out", f"must be a file that ends in .onnx, got {out}")
    refuse_replacing(out, CARD.encode(), "model of colocam")
    model = load_model(Path(run))
    if sum(value.nbytes for value in model.net.state_dict().values()) > MOST_BYTES:
        raise ColocamError(f"the weights in {run} exceed the 2 GiB that an ONNX file can hold: use the run folder")
    proto = to_onnx(model)
    if half:
        _store_in_half(proto.graph)
    with atomic_path(out) as temporary:
        temporary.write_bytes(proto.SerializeToString())
        _compare(temporary, model, HALF_TOLERANCE if half else TOLERANCE)
    return out


def to_onnx(model: Model) -> "onnx.ModelProto":
    """Convert the model to an ONNX graph for any number of frames, with the model card as metadata."""
    try:
        import onnx  # noqa: PLC0415 - an extra
        import onnxruntime  # noqa: F401, PLC0415
        import onnxscript  # noqa: F401, PLC0415
        from onnx_ir.passes.common import ClearMetadataAndDocStringPass  # noqa: PLC0415
    except ImportError as error:
        raise not_installed(error, "export-model", "onnx") from error
    size, name = model.card.size, model.card.backbone.name
    for part in model.net.modules():
        if getattr(part, "inplace", False):  # PyTorch takes twice as long to write ReLU6 in place, which Lite0 has
            part.inplace = False  # type: ignore[assignment]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about PyTorch's own future changes
            program = torch.onnx.export(
                Graph(model.net).eval(),
                (torch.zeros(2, size, size, 3, dtype=torch.uint8),),  # with one frame torch would fix the batch size
                dynamo=True,
                input_names=[FRAMES],
                output_names=OUTPUTS[:-1],
                dynamic_shapes={"frames": {0: torch.export.Dim("batch", min=1)}},
                opset_version=OPSET,
                verbose=False,
            )
    except Exception as error:
        raise ColocamError(f"PyTorch cannot write '{name}' as ONNX: {first_line(error)}") from error
    assert program is not None
    ClearMetadataAndDocStringPass()(program.model)  # removes paths of source files on this machine
    proto = program.model_proto
    proto.graph.node.append(onnx.helper.make_node("Constant", [], ["threshold"], value_float=model.card.threshold))
    proto.graph.output.append(onnx.helper.make_tensor_value_info("threshold", onnx.TensorProto.FLOAT, []))
    onnx.helper.set_model_props(proto, {CARD: model.card.model_dump_json()})
    return proto


def _store_in_half(graph: "onnx.GraphProto") -> None:
    """Store kernels and matrices in float16, unless a value overflows; runtimes convert them when they open it."""
    from onnx import TensorProto, helper, numpy_helper  # noqa: PLC0415 - an extra

    casts = []
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and len(tensor.dims) > 1:
            name, half = tensor.name, numpy_helper.to_array(tensor).astype(np.float16)
            if np.isfinite(half).all():
                tensor.CopyFrom(numpy_helper.from_array(half, f"{name}.half"))
                casts.append(helper.make_node("Cast", [tensor.name], [name], to=TensorProto.FLOAT))
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)


def _compare(path: Path, model: Model, tolerance: float) -> None:
    """Compare the file with PyTorch on noise, on one frame and on several."""
    network, _ = open_onnx(path)
    noise = np.random.default_rng(0).integers(0, 256, (3, model.card.size, model.card.size, 3)).astype(np.uint8)
    for frames in (noise[:1], noise):
        with torch.inference_mode():
            logits, _, *others = (one.numpy() for one in Graph(model.net)(torch.from_numpy(frames)))
        pairs = zip(
            network.submit([frames], np.zeros((len(frames), 2), np.int64)).result()[:4], (logits, *others), strict=True
        )
        worst = max(float(np.abs(one - other).max() / max(1, np.abs(other).max())) for one, other in pairs)
        if not worst <= tolerance:
            raise ColocamError(
                f"onnxruntime and PyTorch differ by {worst:.2g} on '{model.card.backbone.name}': use the run folder, "
                "or other versions of onnxruntime and torch"
            )
