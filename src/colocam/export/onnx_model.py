"""A trained model as one ONNX file: frames in; logits, probabilities, maps and threshold out; its card as metadata.

A gradient CAM could not be written so: its maps need a backward pass at inference, and such a graph runs forward only.
Here the decoder has learnt to draw the maps in the forward pass.
"""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from colocam.errors import ColocamError, first_line
from colocam.inference.onnx_network import CARD, FRAMES, INSTALL, OUTPUTS, open_onnx
from colocam.models import LocalizerNet, foreground
from colocam.models.model_file import Model, load_model
from colocam.utils.files import atomic_path

if TYPE_CHECKING:
    import onnx

OPSET = 18
"""The oldest that PyTorch writes without conversion, so that most runtimes can read it."""
MOST_BYTES = 2**31 - 2**20
"""A single ONNX file cannot be larger than 2 GiB."""
TOLERANCE = 1e-3
"""How far logits and maps of the file may be from PyTorch's; relative to the largest where logits exceed 1."""


class Graph(nn.Module):
    """What the file computes of (B, S, S, 3) uint8 RGB.

    Logits and probabilities (B, K), maps (B, h, w), peaks (B, K), LayerCAMs of the classes (B, K, h', w').
    """

    def __init__(self, net: LocalizerNet) -> None:
        super().__init__()
        self.net = net

    def forward(self, frames: Tensor) -> tuple[Tensor, ...]:
        """Normalisation is the network's own first step, and so inside."""
        logits, map_logits, peaks, activations = self.net(frames.permute(0, 3, 1, 2))
        return logits, logits.softmax(1), foreground(map_logits), peaks, activations


def export_onnx(run: str | Path, out: str | Path) -> Path:
    """Write the model of a run folder to ``out``, a file that ends in ``.onnx``, whole or not at all.

    Before the file gets its name, onnxruntime must give what PyTorch gives, within :data:`TOLERANCE`.
    """
    out = Path(out)
    if out.suffix.lower() != ".onnx" or out.is_dir():
        raise ColocamError(f"-o {out}: give a file that ends in .onnx")
    model = load_model(Path(run))
    if sum(value.nbytes for value in model.net.state_dict().values()) > MOST_BYTES:
        raise ColocamError(f"the weights in {run} exceed the 2 GiB that an ONNX file can hold: use the run folder")
    data = to_onnx(model).SerializeToString()
    with atomic_path(out) as temporary:
        temporary.write_bytes(data)
        _compare(temporary, model)
    return out


def to_onnx(model: Model) -> "onnx.ModelProto":
    """The model as an ONNX graph with its card, for any number of frames."""
    try:
        import onnx  # noqa: PLC0415 - an extra
        import onnxruntime  # noqa: F401, PLC0415
        import onnxscript  # noqa: F401, PLC0415
        from onnx_ir.passes.common import ClearMetadataAndDocStringPass  # noqa: PLC0415
    except ImportError as error:
        raise ColocamError(f"{error.name}, which writes ONNX, is not installed: {INSTALL}") from error
    size, name = model.card.size, model.card.backbone.name
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's exporter warns of what PyTorch itself will change
            program = torch.onnx.export(
                Graph(model.net).eval(),
                (torch.zeros(2, size, size, 3, dtype=torch.uint8),),  # of one frame torch would make a constant
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
    ClearMetadataAndDocStringPass()(program.model)  # else it holds where on this machine each line of code lies
    proto = program.model_proto
    proto.graph.node.append(onnx.helper.make_node("Constant", [], ["threshold"], value_float=model.card.threshold))
    proto.graph.output.append(onnx.helper.make_tensor_value_info("threshold", onnx.TensorProto.FLOAT, []))
    onnx.helper.set_model_props(proto, {CARD: model.card.model_dump_json()})
    return proto


def _compare(path: Path, model: Model) -> None:
    """Run the file and PyTorch on noise, one frame and several."""
    network, _ = open_onnx(path)
    noise = np.random.default_rng(0).integers(0, 256, (3, model.card.size, model.card.size, 3)).astype(np.uint8)
    for frames in (noise[:1], noise):
        with torch.inference_mode():
            logits, _, *others = (one.numpy() for one in Graph(model.net)(torch.from_numpy(frames)))
        pairs = zip(network.submit(frames).result()[:4], (logits, *others), strict=True)
        worst = max(float(np.abs(one - other).max() / max(1, np.abs(other).max())) for one, other in pairs)
        if not worst <= TOLERANCE:
            raise ColocamError(
                f"onnxruntime and PyTorch differ by {worst:.2g} on '{model.card.backbone.name}': use the run folder, "
                "or other versions of onnxruntime and torch"
            )
