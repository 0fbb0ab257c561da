"""A backbone as the encoder uses it, and its weights from a file, of which no pickled code is run."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from colocam.errors import ColocamError, first_line
from colocam.utils.files import stored

_WRAPPER = re.compile(r"^(?:(?:module|model|backbone|body|\.orig\.mod)\.)+")


Decoder = Literal["unet", "unet with centre", "tokens"]


class Trunk(NamedTuple):
    """A backbone, as the encoder uses it.

    Attributes:
        network: normalised frames (B, 3, H, W) → feature maps [(B, C_i, H_i, W_i)], finest first.
        channels: C_i.
        last_stage: prefixes of the names of the parameters after the last but one map; stage 1 trains them with a
            higher learning rate.
        decoder: which decoder fits the maps, see :func:`colocam.models.decoder.make_decoder`.
    """

    network: nn.Module
    channels: list[int]
    last_stage: tuple[str, ...]
    decoder: Decoder = "unet"


def load_weights(network: nn.Module, path: Path | None) -> None:
    """Load the tensors of a .safetensors or .pth file into ``network``; None: nothing is loaded.

    Every tensor of the network must be in the file with the same shape, except counters of batch norms. Further tensors
    of the file, e.g. an ImageNet head, are ignored.
    """
    if path is None:
        return
    tensors = read_weights(path)
    wanted = network.state_dict()
    names = match_names(wanted, tensors)
    missing = [name for name in wanted if name not in names and not name.endswith("num_batches_tracked")]
    if missing:
        raise ColocamError(f"{path} lacks '{missing[0]}' and {len(missing) - 1} more: it belongs to another network")
    for name, source in names.items():
        if tensors[source].shape != wanted[name].shape:
            raise ColocamError(
                f"{path}: '{source}' is {tuple(tensors[source].shape)}, the network has {tuple(wanted[name].shape)}"
            )
    network.load_state_dict({name: tensors[source] for name, source in names.items()}, strict=False)


def match_names(wanted: Iterable[str], found: Iterable[str]) -> dict[str, str]:
    """Name in the network → name in the file, for names that are in both.

    Prefixes of wrappers (``module.`` of data parallelism, ``body.`` of timm's feature extractors, …) are ignored, and
    dots match underscores (``stages.0`` is ``stages_0`` in timm's feature extractors). Identical names match first.
    """
    exact = set(found)
    similar = {plain(name): name for name in exact}
    names = {name: name if name in exact else similar.get(plain(name)) for name in wanted}
    return {name: source for name, source in names.items() if source is not None}


def plain(name: str) -> str:
    """A parameter's name without prefixes of wrappers, and with dots for underscores."""
    return _WRAPPER.sub("", name.replace("_", "."))


def read_weights(path: Path) -> Mapping[str, Tensor]:
    """Read the state dict of a file: at the top level, or under the key ``state_dict`` or ``model``."""
    if not stored(path).is_file():
        raise ColocamError(f"no weights at {path} (backbone.weights): give a .safetensors or .pth file")
    try:
        content = (
            load_file(path)
            if path.suffix == ".safetensors"
            else torch.load(path, map_location="cpu", weights_only=True)
        )
    except Exception as error:
        raise ColocamError(f"cannot read weights from {path}: {first_line(error)}") from error
    if isinstance(content, dict):
        for state in (content, content.get("state_dict"), content.get("model")):
            if isinstance(state, dict) and state and all(isinstance(value, Tensor) for value in state.values()):
                return state
    raise ColocamError(f"{path} (backbone.weights) holds no plain state dict: save 'network.state_dict()' alone")
