"""Which arguments of timm's networks a configuration or a stranger's model may set.

timm takes many more, some of which open files or run the code in them (``checkpoint_path``, ``pretrained_cfg``, …).
"""

import inspect
import re
import sys
from collections.abc import Mapping

import timm
from torch import nn

from colocam.errors import ColocamError, suggest

NAMES = frozenset(
    [
        "act_layer",
        "attn_drop_rate",
        "avg_down",
        "base_width",
        "cardinality",
        "channels",
        "class_token",
        "conv_mlp",
        "depth",
        "depths",
        "dims",
        "down_kernel_size",
        "drop_path_rate",
        "drop_rate",
        "dynamic_img_pad",
        "embed_dim",
        "embed_dims",
        "expand_ratio",
        "fc_norm",
        "final_norm",
        "fix_stem",
        "global_pool",
        "growth_rate",
        "head_dim",
        "head_init_scale",
        "img_size",
        "init_values",
        "kernel_size",
        "kernel_sizes",
        "layers",
        "ls_init_value",
        "mlp_ratio",
        "mlp_ratios",
        "no_embed_class",
        "norm_eps",
        "norm_layer",
        "num_features",
        "num_heads",
        "num_init_features",
        "out_indices",
        "pad_type",
        "patch_size",
        "pos_drop_rate",
        "pos_embed",
        "pre_norm",
        "proj_drop_rate",
        "qk_norm",
        "qkv_bias",
        "reg_tokens",
        "se_ratio",
        "sr_ratios",
        "stem_chs",
        "stem_size",
        "stem_stride",
        "stem_type",
        "stem_width",
        "strict_img_size",
        "swiglu_mlp",
        "use_abs_pos_emb",
        "use_grn",
        "use_pos_embed",
        "use_rel_pos",
        "width",
        "width_factor",
        "widths",
        "window_ratio",
        "window_size",
        "zero_init_last",
    ]
)
"""Arguments of architectures in timm that are plain numbers, words or lists of these."""
DEPTHS = frozenset({"depth", "depths", "layers"})
"""Those that count blocks."""
LARGEST = 1 << 16
"""Largest number; wider layers than this exist in no network of timm."""
LONGEST = 64
"""Entries of a list, and characters of a word."""
DEEPEST = 3
"""Lists within lists."""
TYPO = 0.75
"""Likeness of two names from which on one is a misspelling of the other; 'checkpoint_path' is none of any name."""

_WORD = re.compile(r"[\w.+-]*")


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


def check_depth(arguments: Mapping[str, object], tensors: int) -> None:
    """Refuse a network with more blocks than its file has tensors, before any block is built."""
    for name in DEPTHS & arguments.keys():
        if (blocks := _total(arguments[name])) > tensors:
            raise ColocamError(f"backbone.args.{name} asks for {blocks} blocks, but the weights have {tensors} tensors")


def _total(value: object) -> int:
    return sum(map(_total, value)) if isinstance(value, list | tuple) else int(value) if isinstance(value, int) else 0


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
