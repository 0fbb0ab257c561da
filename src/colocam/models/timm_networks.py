"""Build networks of timm by name, with errors of one line."""

import warnings
from difflib import get_close_matches
from typing import Any, NamedTuple

import timm
from torch import nn

from colocam.config import Backbone
from colocam.errors import ColocamError, first_line
from colocam.models.backbone_arguments import check_arguments


class Trunk(NamedTuple):
    """A backbone, as the encoder uses it.

    Attributes:
        network: normalised frames (B, 3, H, W) → feature maps [(B, C_i, H_i, W_i)], finest first.
        channels: C_i.
        last_stage: prefixes of the names of the parameters after the last but one map; stage 1 trains them with a
            higher learning rate.
    """

    network: nn.Module
    channels: list[int]
    last_stage: tuple[str, ...]


def create(backbone: Backbone, **arguments: Any) -> Any:  # noqa: ANN401 - timm's networks have no common type
    """Build a network of timm with ``backbone.args`` and ``arguments``; a file of weights replaces the download."""
    name, download = backbone.name, backbone.pretrained and backbone.weights is None
    check_arguments(name, backbone.args)
    arguments = {**backbone.args, **arguments}
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "Initializing zero-element tensors", UserWarning)
            return timm.create_model(name, pretrained=download, **arguments)
    except UserWarning as error:
        raise ColocamError(
            f"a layer of '{name}' has no channels with backbone.args {backbone.args}: widen it"
        ) from error
    except OSError as error:
        raise ColocamError(
            f"the weights of '{name}' could not be downloaded ({first_line(error)}): "
            "set backbone.weights to a local file, or backbone.pretrained to false"
        ) from error
    except Exception as error:  # what an argument that does not fit makes of its code
        if "output_stride" in arguments and ("output_stride" in str(error) or str(error) == ""):
            raise ColocamError(keeps_its_strides(backbone)) from error
        raise ColocamError(f"timm cannot build '{name}' with {arguments}: {first_line(error)}") from error


def keeps_its_strides(backbone: Backbone) -> str:
    """Error message of a network whose strides cannot be removed."""
    return (
        f"timm's '{backbone.name}' cannot be built with backbone.output_stride {backbone.output_stride}: "
        "set it to 32, or choose a network whose strides can be removed (resnet50, convnext_tiny, …)"
    )


def family(name: str) -> str:
    """The module of timm that defines a network, e.g. ``resnet`` for resnet50.a1_in1k."""
    if not timm.is_model(name):
        near = get_close_matches(name, timm.list_models(), n=3, cutoff=0.4)
        remedy = f"did you mean {', '.join(near)}?" if near else "timm.list_models() lists all"
        raise ColocamError(f"timm has no network '{name}' (backbone.name): {remedy}")
    return str(timm.models.model_entrypoint(name).__module__).rpartition(".")[2]


def normalisation(backbone: Backbone) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of RGB in 0–1: those of the configuration, or what timm states for the network."""
    stated = timm.get_pretrained_cfg(backbone.name)
    mean, std = (stated.mean, stated.std) if stated else (None, None)
    mean, std = backbone.mean or mean, backbone.std or std
    if mean is None or std is None:
        raise ColocamError(f"timm states no normalisation for '{backbone.name}': set backbone.mean and backbone.std")
    return mean, std


def convolution(into: int, out: int) -> nn.Conv2d:
    """A new 3×3 convolution, initialised for a following ReLU (He et al., 2015)."""
    layer = nn.Conv2d(into, out, 3, padding=1)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)
    return layer
