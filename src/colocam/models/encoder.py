"""The encoder: a timm network that returns its feature maps, with strides removed for finer class activation maps."""

from pathlib import Path

import timm
import torch
from safetensors.torch import load_file
from timm.layers.pool2d_same import AvgPool2dSame
from torch import Tensor, nn

from colocam.config import Backbone
from colocam.errors import ColocamError

MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
"""ImageNet's mean and deviation of RGB in 0–1, which timm's weights expect."""


class Encoder(nn.Module):
    """Frames → feature maps, finest first.

    Attributes:
        channels: channels of each feature map, finest first.
    """

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.network, self.channels = _create(backbone)
        self.register_buffer("mean", torch.tensor(MEAN).view(1, 3, 1, 1) * 255, persistent=False)
        self.register_buffer("std", torch.tensor(STD).view(1, 3, 1, 1) * 255, persistent=False)

    def forward(self, frames: Tensor) -> list[Tensor]:
        """(B, 3, H, W) RGB in 0–255, any dtype → features [(B, C_i, H_i, W_i)], finest first."""
        assert isinstance(self.mean, Tensor)
        assert isinstance(self.std, Tensor)
        normalised = (frames.to(self.mean.dtype) - self.mean) / self.std
        features: list[Tensor] = self.network(normalised.contiguous(memory_format=torch.channels_last))
        return features


def _create(backbone: Backbone) -> tuple[nn.Module, list[int]]:
    arguments = dict(backbone.args)
    if backbone.output_stride != 32:
        arguments["output_stride"] = backbone.output_stride
    try:
        network = timm.create_model(
            backbone.name, pretrained=backbone.pretrained and backbone.weights is None, features_only=True, **arguments
        )
    except RuntimeError as error:
        if "Unknown model" in str(error):
            raise ColocamError(
                f"timm has no network '{backbone.name}' (backbone.name): {_nearest(backbone.name)}"
            ) from error
        raise ColocamError(f"timm cannot build '{backbone.name}' with {arguments}: {_first_line(error)}") from error
    except OSError as error:
        raise ColocamError(
            f"the weights of '{backbone.name}' could not be downloaded ({_first_line(error)}): "
            "set backbone.weights to a local file, or backbone.pretrained to false"
        ) from error
    except (TypeError, ValueError, LookupError, AttributeError, AssertionError) as error:
        raise ColocamError(f"timm cannot build '{backbone.name}' with {arguments}: {_first_line(error)}") from error
    channels: list[int] = network.feature_info.channels()  # type: ignore[operator, union-attr]  # timm is untyped
    _remove_dilation(network)
    if backbone.weights is not None:
        _load_weights(network, backbone.weights)
    return network.to(memory_format=torch.channels_last), channels


def _remove_dilation(network: nn.Module) -> None:
    """Undo what timm puts in place of a removed stride: the published networks have none of it.

    These are dilations, and, in shortcuts that average before they stride (ResNet-D), a 2×2 mean with stride 1: it
    looks half a cell down and right, so that class activation maps would lie up and left of the object.
    """
    for module in network.modules():
        if isinstance(module, nn.Conv2d) and module.dilation != (1, 1):
            module.padding = tuple(side // 2 for side in module.kernel_size)
            module.dilation = (1, 1)
    for name, module in list(network.named_modules()):
        if isinstance(module, AvgPool2dSame) and module.stride in {1, (1, 1)}:
            network.set_submodule(name, nn.Identity())


def _load_weights(network: nn.Module, path: Path) -> None:
    """Load a state dict by name, safely; layers that features do not use (the ImageNet head) are left out."""
    if not path.is_file():
        raise ColocamError(f"no weights at {path} (backbone.weights): give a .safetensors or .pth file")
    try:
        state = (
            load_file(path)
            if path.suffix == ".safetensors"
            else torch.load(path, map_location="cpu", weights_only=True)
        )
    except Exception as error:
        raise ColocamError(f"cannot read weights from {path}: {_first_line(error)}") from error
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        raise ColocamError(f"{path} (backbone.weights) holds no plain state dict: save 'network.state_dict()' alone")
    wanted = network.state_dict()
    missing = [name for name in wanted if name not in state and not name.endswith("num_batches_tracked")]
    if missing:
        raise ColocamError(f"{path} lacks '{missing[0]}' and {len(missing) - 1} more: it belongs to another network")
    wrong = next((n for n in wanted if n in state and state[n].shape != wanted[n].shape), None)
    if wrong is not None:
        raise ColocamError(
            f"{path}: '{wrong}' is {tuple(state[wrong].shape)}, the network has {tuple(wanted[wrong].shape)}"
        )
    network.load_state_dict({name: state[name] for name in wanted if name in state}, strict=False)


def _nearest(name: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only on the way to an error

    near = get_close_matches(name, timm.list_models(), n=3, cutoff=0.4)
    return f"did you mean {', '.join(near)}?" if near else "timm.list_models() lists all"


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
