"""Write a trained model as one ONNX file: frames in; logits, probabilities, maps and threshold out; card as metadata.

A gradient CAM cannot be written this way, since it needs a backward pass; the decoder needs a forward pass only.
"""

import logging
import warnings
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from colocam.errors import ArgumentError, ColocamError, first_line
from colocam.inference.network import CARD, FRAMES, OUTPUTS, open_onnx
from colocam.inference.stages import read_passes
from colocam.inference.videos import find_videos
from colocam.models import LocalizerNet, foreground
from colocam.models.model_file import Model, load_model
from colocam.types import Levels
from colocam.utils.extras import not_installed
from colocam.utils.files import atomic_path, refuse_replacing, stored
from colocam.video.fence import open_video
from colocam.video.frame_choice import FrameChoice, evenly

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
INT8_TOLERANCE = 0.02
"""Mean difference of the maps with a decoder of 8 bits on the frames that gave its ranges; about 0.003 is usual. Also
of the logits, where the class is read with the decoder."""
EXAMPLES = 256
"""Frames that the ranges are measured on; with 64 the maps differ by half as much again."""
EVERY = 8
"""Distance of such frames in a video at most: a long one is not read to its end."""


class Graph(nn.Module):
    """What the file computes from (B, S, S, 3) uint8 RGB.

    Logits and probabilities (B, K), maps (B, h, w), peaks (B, K), LayerCAMs of the classes (B, K, h', w').
    """

    def __init__(self, net: LocalizerNet) -> None:
        super().__init__()
        self.net = net

    def forward(self, frames: Tensor) -> tuple[Tensor, ...]:
        """Run the network, whose first step normalizes the frames."""
        logits, map_logits, peaks, activations = self.net(frames.permute(0, 3, 1, 2))
        return logits, logits.softmax(1), foreground(map_logits), peaks, activations


def export_onnx(run: str | Path, out: str | Path, *, half: bool = False, int8: str | Path | None = None) -> Path:
    """Write the model of a run folder to ``out``, a file that ends in ``.onnx``; it appears only when it is complete.

    An earlier model is replaced, another file never. The file is kept only if onnxruntime agrees with PyTorch within
    :data:`TOLERANCE`, or :data:`HALF_TOLERANCE`.

    Args:
        run: the run folder.
        out: the file.
        half: store kernels and matrices in 16 bits, half of the bytes. Runtimes compute in 32 bits all the same.
        int8: a video, or a folder of videos, like those to come: the decoder computes in 8 bits, in ranges measured on
            them. The classifier stays as it is.
    """
    out = Path(out)
    if out.suffix.lower() != ".onnx" or out.is_dir():
        raise ArgumentError("out", f"must be a file that ends in .onnx, got {out}")
    refuse_replacing(out, CARD.encode(), "model of colocam")
    if int8 is not None:
        stored(Path(int8))
    model = load_model(Path(run))
    if sum(value.nbytes for value in model.net.state_dict().values()) > MOST_BYTES:
        raise ColocamError(f"the weights in {run} exceed the 2 GiB that an ONNX file can hold: use the run folder")
    if model.net.names is not None:
        model.net.names.forget_others()
    examples = None if int8 is None else _examples(Path(int8), model.card.size)
    proto = to_onnx(model)
    if examples is not None:
        proto = _in_8_bits(proto, examples)
    if half:
        _store_in_half(proto.graph)
    with atomic_path(out) as temporary:
        temporary.write_bytes(proto.SerializeToString())
        _compare(temporary, model, HALF_TOLERANCE if half else TOLERANCE, examples)
    return out


def _examples(videos: Path, size: int) -> Levels:
    """Frames (N, S, S, 3), at least four of a video if it has them: many begin without an object."""
    named = find_videos([videos], videos)
    chosen = [named[at].source for at in evenly(len(named), EXAMPLES // 4)]
    each, examples = -(-EXAMPLES // len(chosen)), []
    for source in chosen:
        with open_video(source) as video:
            every = min(max(video.estimate() // each, 1), EVERY)
            frames = islice(video.frames(FrameChoice(every=every)), each)
            passes = read_passes(frames, size, each, None, histograms=False, images=False)
            examples += [one.images[one.new] for one in passes]
    return np.concatenate(examples)


def _in_8_bits(proto: "onnx.ModelProto", examples: Levels) -> "onnx.ModelProto":
    """Let blocks of decoders compute in 8 bits: two thirds of a small network's time, and a quarter of that then."""
    import onnx  # noqa: PLC0415 - an extra
    from onnxruntime import quantization as q  # noqa: PLC0415

    class Examples(q.CalibrationDataReader):  # type: ignore[misc]  # untyped
        """The frames, one by one."""

        rows = iter(examples)

        def get_next(self) -> dict[str, Levels] | None:
            row = next(self.rows, None)
            return None if row is None else {FRAMES: row[None]}

    blocks = (".decoder.unet.", ".prior.unet.")
    kernels = [
        node for node in proto.graph.node if node.op_type == "Conv" and any(name in node.input[1] for name in blocks)
    ]
    made = {name for node in kernels for name in node.output}
    rectified = [node for node in proto.graph.node if node.op_type == "Relu" and made.intersection(node.input)]
    with TemporaryDirectory(prefix="colocam-") as scratch:
        target = Path(scratch, "int8.onnx")
        before = logging.root.manager.disable
        logging.disable(logging.WARNING)  # advice to join batch norms, which PyTorch's exporter did
        try:
            q.quantize_static(
                proto,
                target,
                Examples(),
                op_types_to_quantize=["Conv", "Relu"],
                nodes_to_quantize=[node.name for node in (*kernels, *rectified)],
                per_channel=True,
                reduce_range=True,  # weights of 7 bits: processors without VNNI add pairs of products in 16
                activation_type=q.QuantType.QUInt8,
                weight_type=q.QuantType.QInt8,
            )
        finally:
            logging.disable(before)
        return onnx.load(target)


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


def _compare(path: Path, model: Model, tolerance: float, examples: Levels | None) -> None:
    """Compare the file with PyTorch on noise, on one frame and on several; with 8 bits, its maps on the examples."""
    network, _ = open_onnx(path)
    noise = np.random.default_rng(0).integers(0, 256, (3, model.card.size, model.card.size, 3)).astype(np.uint8)
    for frames in (noise[:1], noise) if examples is None else (examples[evenly(len(examples), 16)],):
        with torch.inference_mode():
            logits, _, *others = (one.numpy() for one in Graph(model.net)(torch.from_numpy(frames)))
        ours = network.submit([frames], np.zeros((len(frames), 2), np.int64)).result()[:4]
        differences = [
            np.abs(one - other) / max(1, np.abs(other).max())
            for one, other in zip(ours, (logits, *others), strict=True)
        ]
        if examples is not None:
            from_decoder = {"maps": differences.pop(1)}
            if model.card.class_in_map or model.card.crop_head:
                from_decoder["logits"] = differences.pop(0)
            for name, difference in from_decoder.items():
                if not (mean := float(difference.mean())) <= INT8_TOLERANCE:
                    raise ColocamError(
                        f"{name} computed in 8 bits differ by {mean:.2g} on average: export without --int8"
                    )
        worst = max(float(one.max()) for one in differences)
        if not worst <= tolerance:
            raise ColocamError(
                f"onnxruntime and PyTorch differ by {worst:.2g} on '{model.card.backbone.name}': use the run folder, "
                "or other versions of onnxruntime and torch"
            )
