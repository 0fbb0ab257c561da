"""Build networks of timm by name, with errors of one line, and load their weights, of which no pickled code is run.

A configuration or a stranger's model may set only :data:`NAMES` of a network's arguments. timm takes many more, some of
which open files or run the code in them (``checkpoint_path``, ``pretrained_cfg``, …).

Tests: tests/models/test_backbone_arguments.py, tests/models/test_backbones.py.
"""

import inspect
import re
import sys
import warnings
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import timm
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_weights

from colocam.config import Backbone
from colocam.errors import ColocamError, first_line, suggest
from colocam.models.imagenet_names import CLASSES
from colocam.utils.extensions import HOW
from colocam.utils.files import stored

NAMES = frozenset({
    "act_layer", "attn_drop_rate", "avg_down", "base_width", "cardinality", "channels", "class_token", "conv_mlp",
    "depth", "depths", "dims", "down_kernel_size", "drop_path_rate", "drop_rate", "dynamic_img_pad", "embed_dim",
    "embed_dims", "expand_ratio", "fc_norm", "final_norm", "fix_stem", "global_pool", "growth_rate", "head_dim",
    "head_init_scale", "img_size", "init_values", "kernel_size", "kernel_sizes", "layers", "ls_init_value",
    "mlp_ratio", "mlp_ratios", "no_embed_class", "norm_eps", "norm_layer", "num_features", "num_heads",
    "num_init_features", "out_indices", "pad_type", "patch_size", "pos_drop_rate", "pos_embed", "pre_norm",
    "proj_drop_rate", "qk_norm", "qkv_bias", "reg_tokens", "se_ratio", "sr_ratios", "stem_chs", "stem_size",
    "stem_stride", "stem_type", "stem_width", "strict_img_size", "swiglu_mlp", "use_abs_pos_emb", "use_grn",
    "use_pos_embed", "use_rel_pos", "width", "width_factor", "widths", "window_ratio", "window_size",
    "zero_init_last",
})  # fmt: skip
"""Arguments of architectures in timm that are plain numbers, words or lists of these."""
LARGEST = 1 << 16
"""Largest number; wider layers than this exist in no network of timm."""
LONGEST = 64
"""Entries of a list, and characters of a word."""
DEEPEST = 3
"""Lists within lists."""
TYPO = 0.75
"""Likeness of two names from which on one is a misspelling of the other; 'checkpoint_path' is none of any name."""

_WORD = re.compile(r"[\w.+-]*")
_WRAPPER = re.compile(r"^(?:(?:module|model|backbone|body|\.orig\.mod)\.)+")


def create(backbone: Backbone, **arguments: Any) -> Any:  # noqa: ANN401 - timm's networks have no common type
    """Build a network of timm with ``backbone.args`` and ``arguments``; a file of weights replaces the download."""
    name = backbone.name
    download = backbone.pretrained and backbone.weights is None
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
        raise ColocamError(f"timm has no network '{name}' (backbone.name): {remedy} {HOW}")
    return str(timm.models.model_entrypoint(name).__module__).rpartition(".")[2]


def normalization(backbone: Backbone) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of RGB in 0–1: those of the configuration, or what timm states for the network."""
    stated = timm.get_pretrained_cfg(backbone.name)
    mean, std = (stated.mean, stated.std) if stated else (None, None)
    mean, std = backbone.mean or mean, backbone.std or std
    if mean is None or std is None:
        raise ColocamError(f"timm states no normalization for '{backbone.name}': set backbone.mean and backbone.std")
    return mean, std


def convolution(into: int, out: int) -> nn.Conv2d:
    """A new 3×3 convolution, initialized for a following ReLU (He et al., 2015)."""
    layer = nn.Conv2d(into, out, 3, padding=1)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)
    return layer


def check_arguments(network: str, arguments: Mapping[str, object]) -> None:
    """Refuse ``backbone.args`` that are not plain arguments of an architecture.

    A network that is registered from outside timm may also have arguments of its own, which its function names.

    Raises:
        ColocamError: names the argument.
    """
    allowed = NAMES | _own(network)
    for name, value in arguments.items():
        if name not in allowed:
            taken = sorted(allowed & _taken(network)) or sorted(allowed)
            raise ColocamError(f"backbone.args must not hold '{name}'{suggest(name, taken, likeness=TYPO)}")
        if not _is_plain(value):
            raise ColocamError(
                f"backbone.args.{name} must be a finite number up to {LARGEST}, true, false, a short word or a list "
                f"of these, got {str(value)[:80]}"
            )


def _own(network: str) -> frozenset[str]:
    entry = timm.models.model_entrypoint(network)
    if entry.__module__.partition(".")[0] == "timm":
        return frozenset()
    given = inspect.signature(entry).parameters.values()
    return frozenset(one.name for one in given if one.kind is not one.VAR_KEYWORD and one.name != "pretrained")


def _taken(network: str) -> frozenset[str]:
    """Arguments of a network: those of its function, and of the networks in the same module of timm."""
    entry = timm.models.model_entrypoint(network)
    classes = [one for _, one in inspect.getmembers(sys.modules[entry.__module__], inspect.isclass)]
    networks = [one for one in classes if one.__module__ == entry.__module__ and issubclass(one, nn.Module)]
    given = [inspect.signature(one).parameters.keys() for one in networks]
    return _own(network).union(*(names for names in given if "num_classes" in names))


def _is_plain(value: object, depth: int = 0) -> bool:
    match value:
        case None | bool():
            return True
        case int() | float():
            return -LARGEST <= value <= LARGEST  # false for NaN
        case str():
            return len(value) <= LONGEST and _WORD.fullmatch(value) is not None
        case list() | tuple():
            within = depth < DEEPEST and len(value) <= LONGEST
            return within and all(_is_plain(one, depth + 1) for one in value)
        case _:
            return False


def imagenet_layers(backbone: Backbone, path: Path) -> tuple[nn.Conv2d | None, nn.Linear]:
    """What follows the encoder in a file of weights trained on ImageNet: a convolution with ReLU6, or none; classes."""
    network = create(backbone.model_copy(update={"pretrained": False, "weights": None}))
    classes, conv, norm = network.get_classifier(), getattr(network, "conv_head", None), getattr(network, "bn2", None)
    known = isinstance(classes, nn.Linear) and classes.out_features == CLASSES
    if not known or (conv is not None and type(getattr(norm, "act", None)) is not nn.ReLU6):
        raise ColocamError(
            f"classifier.imagenet: the layers of '{backbone.name}' after its last feature map are none that colocam "
            "reads: use a ResNet or an EfficientNet-Lite, or leave classifier.imagenet out"
        )
    load_weights(network, path)
    if conv is None:
        return None, classes
    assert norm is not None
    folded = nn.Conv2d(conv.in_channels, conv.out_channels, 1)
    folded.weight, folded.bias = fuse_conv_bn_weights(
        conv.weight, conv.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias
    )
    return folded, classes


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
        raise ColocamError(
            f"{path} lacks '{missing[0]}' and {len(missing) - 1} more: it belongs to a different network"
        )
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
    raise ColocamError(f"{path} (backbone.weights) is not a plain state dict: save only 'network.state_dict()'")
