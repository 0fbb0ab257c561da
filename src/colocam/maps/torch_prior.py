"""The network of a prior, run by PyTorch on a GPU, where onnxruntime's build for the CPU would keep frames waiting.

onnx2torch makes a torch module of the ONNX file. All its passes have the same number of images, so what depends on
their shape alone is computed once, and a pass is one CUDA graph. It is used only if its maps are those of onnxruntime.
"""

import warnings
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import torch
from torch import Tensor, fx, nn

from colocam.errors import first_line
from colocam.models.folding import fold_batch_norms, fuse_relus
from colocam.types import Float32Array, Levels
from colocam.utils.cuda_graphs import Recorded
from colocam.utils.extras import install_extra
from colocam.utils.progress import long_work

ROWS = 16
"""Images of one pass."""
TOLERANCE = 10
"""Levels of 255 that maps may differ from those of onnxruntime, but for one pixel in 1,000: a GPU rounds products to
fewer bits, and U²-Net-p differs by 3 there (lab/notes/prior.md)."""
TYPES = (torch.float16, torch.float32)
"""Of the weights, the faster one first."""


class UnfitError(Exception):
    """This network cannot be run here, and why."""


class Reading(NamedTuple):
    """How a prior reads images.

    Attributes:
        sides: height and width of the network's input.
        normal: (2, 3) mean and standard deviation of the colors of images in 0–1.
        rounding: by how much valid values of a map may be outside 0–1.
    """

    sides: tuple[int, int]
    normal: Float32Array
    rounding: float


class Seen(NamedTuple):
    """What the network saw in B images.

    Attributes:
        levels: (B, h, w) maps in 8 bits.
        valid: (B,) whether all values of a map were in 0–1.
    """

    levels: Levels
    valid: Sequence[bool]


class TorchPrior:
    """A prior's network on a device.

    The recorded pass reads and writes fixed buffers, so one thread of its own runs all of them.

    Args:
        path: of the ONNX file.
        device: of torch.
        how: images are read.
        dtype: of the weights.
        rows: images of a pass.
    """

    def __init__(self, path: Path, device: torch.device, how: "Reading", dtype: torch.dtype, rows: int) -> None:
        self.device, self.dtype, self.rows = device, dtype, rows
        self._rounding = how.rounding
        self._owner = ThreadPoolExecutor(1, "prior")
        blank = torch.zeros(rows, 3, *how.sides, device=device)
        net = fold_batch_norms(_without_shapes(_converted(path).to(device), blank), blank)
        if device.type == "cuda":
            fuse_relus(net, blank)
        self._net = net.to(dtype)
        self._normal = torch.from_numpy(how.normal).to(device)[:, None, :, None, None]
        self._recorded = Recorded(lambda read: self._compute(read["images"]), rows, device)

    def start(self, images: Sequence[Levels]) -> "list[Future[Seen]]":
        """Start the passes of images (h, w, 3), RGB, that have the size of the network's input."""
        parts = [images[start : start + self.rows] for start in range(0, len(images), self.rows)]
        return [long_work(self._owner.submit(self._pass, part)) for part in parts]

    @torch.no_grad()
    def _pass(self, images: Sequence[Levels]) -> Seen:
        filled = torch.zeros((self.rows, *images[0].shape), dtype=torch.uint8)
        np.stack(images, out=filled.numpy()[: len(images)])
        with torch.cuda.device(self.device) if self.device.type == "cuda" else nullcontext():
            levels, low, high = self._recorded({"images": filled.to(self.device)})
            valid = (low >= -self._rounding) & (high <= 1 + self._rounding)  # false for NaN
            count = len(images)
            # on a CPU this would be no copy
            return Seen(levels[:count].cpu().numpy().copy(), valid[:count].tolist())

    def _compute(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Maps (B, h, w) in 8 bits, their lowest and highest values (B,), of images (B, H, W, 3) on the device."""
        colors = images.permute(0, 3, 1, 2).float()
        relative = colors / colors.amax((1, 2, 3), keepdim=True).clamp(min=1)
        mean, std = self._normal
        normalized = ((relative - mean) / std).to(self.dtype).contiguous(memory_format=torch.channels_last)
        output = self._net(normalized).float().flatten(0, -3)
        extremes = output.amin((1, 2)), output.amax((1, 2))
        return (255 * output.clamp(0, 1)).round().byte(), *extremes


def torch_prior(
    path: Path, device: torch.device, how: Reading, images: Sequence[Levels], expected: Levels
) -> TorchPrior:
    """The network of the ONNX file ``path`` on a device, if what it sees in images is what is ``expected``.

    Raises:
        UnfitError: it does not, or it cannot be converted.
    """
    copies = ROWS // len(images)
    reason = ""
    for dtype in TYPES:
        for rows in (ROWS, 1):
            try:
                made = TorchPrior(path, device, how, dtype, rows)
                together, alone = _all(made, [*images] * copies), _all(made, images[:1])
            except ImportError as error:
                raise UnfitError(f"{error.name} is not installed: {install_extra('prior')}") from error
            except torch.OutOfMemoryError:
                raise
            except Exception as error:  # noqa: BLE001 - converted networks have any error
                reason = f"onnx2torch cannot convert it ({type(error).__name__}: {first_line(error)})"
                continue
            if together.shape[1:] != expected.shape[1:]:
                reason = f"converted by onnx2torch, its maps have {together.shape[1:]} pixels, not {expected.shape[1:]}"
                continue
            difference = float(np.quantile(np.abs(together[: len(images)].astype(int) - expected), 0.999))
            if difference > TOLERANCE:
                reason = f"converted by onnx2torch, its maps differ by {difference:.0f} levels of 255"
                continue
            if (together == np.tile(together[: len(images)], (copies, 1, 1))).all() and (alone == together[0]).all():
                return made
            reason = "its maps depend on other images of the pass"
    raise UnfitError(f"{reason}: give a network of other operators")


def _all(network: TorchPrior, images: Sequence[Levels]) -> Levels:
    return np.concatenate([future.result().levels for future in network.start(images)])


def pictures(height: int, width: int) -> list[Levels]:
    """Four pictures (height, width, 3) with an ellipse each before smooth colors."""
    random = np.random.default_rng(0)
    made: list[Levels] = []
    for _ in range(4):
        coarse = random.integers(0, 256, (6, 6, 3), np.uint8)
        image = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
        center, axes = (
            [int(share * side) for share, side in zip(random.uniform(*bounds, 2), (width, height), strict=True)]
            for bounds in ((0.35, 0.65), (0.1, 0.35))
        )
        color = random.integers(0, 256, 3).tolist()
        cv2.ellipse(image, center, axes, float(random.integers(180)), 0, 360, color, -1)
        made.append(np.asarray(image, np.uint8))
    return made


def _converted(path: Path) -> fx.GraphModule:
    import onnx  # noqa: PLC0415 - an extra
    from onnx2torch import convert  # noqa: PLC0415 - an extra

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what may differ; the maps are compared
        model = onnx.load(path)
        net: fx.GraphModule = convert(model).eval()
    output = next(node for node in net.graph.nodes if node.op == "output")
    if isinstance(output.args[0], tuple | list):
        output.args = (output.args[0][0],)
        net.graph.eliminate_dead_code()
        net.recompile()
    return net


@torch.no_grad()
def _without_shapes(net: fx.GraphModule, images: Tensor) -> fx.GraphModule:
    """Replace all that depends on no pixel by its value: shapes and sizes, for which the host would wait for a GPU.

    A ReLU works in place where nothing else reads its input.
    """
    known = _Known(net)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known.run(images)
    for number, (node, value) in enumerate(known.values.items()):
        users = [user for user in node.users if user not in known.values]
        if not users:
            continue
        name = f"known_{number}"
        if isinstance(value, Tensor) and value.is_floating_point() and not all(map(known.resizes, users)):
            net.register_buffer(name, value)
        else:
            setattr(net, name, value.cpu() if isinstance(value, Tensor) else value)
        with net.graph.inserting_before(node), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it is no buffer, which would change its type with the weights
            stored = net.graph.get_attr(name)
        node.replace_all_uses_with(stored, lambda user: user not in known.values)
    net.graph.eliminate_dead_code()
    net.delete_all_unused_submodules()
    modules = dict(net.named_modules())
    for node in net.graph.nodes:
        relu = modules.get(str(node.target))
        if isinstance(relu, nn.ReLU) and len(node.all_input_nodes[0].users) == 1:
            relu.inplace = True
    net.recompile()
    return net


class _Known(fx.Interpreter):
    """Runs a network and remembers the values that depend on no pixel."""

    def __init__(self, net: fx.GraphModule) -> None:
        super().__init__(net)
        self.values: dict[fx.Node, Any] = {}

    def run_node(self, n: fx.Node) -> Any:  # noqa: ANN401 - torch's signature
        result = super().run_node(n)
        depends = n.op in {"placeholder", "output"} or not all(node in self.values for node in n.all_input_nodes)
        if not depends or self._kind(n) == "OnnxShape":
            self.values[n] = result
        return result

    def resizes(self, node: fx.Node) -> bool:
        """Whether it changes the size of a map: its sizes and scales are numbers."""
        return self._kind(node).startswith("OnnxResize")

    def _kind(self, node: fx.Node) -> str:
        return type(self.fetch_attr(str(node.target))).__name__ if node.op == "call_module" else ""
