"""A CLIP with a ViT image encoder, split before its last attention so that class maps need no hooks.

Tests: tests/cams/clip/test_encoder.py.
"""

import re
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from colocam.errors import ColocamError, first_line
from colocam.utils.extras import not_installed

if TYPE_CHECKING:
    from transformers import CLIPModel, CLIPTokenizer


NEEDED = (
    "give a name like 'openai/clip-vit-base-patch16' or a folder with the config.json, model.safetensors, "
    "preprocessor_config.json and tokenizer files of a CLIP in Hugging Face format"
)


class View(NamedTuple):
    """State of the image encoder before its last attention.

    Attributes:
        activations: (B, 1+N, C) the class token and the N = h·w patch tokens, as input of the last attention.
        class_token: (B, C) the class token that the output of the last block is added to.
        attention: (B, N, N) attention between patches, mean over heads and layers; None unless requested.
        grid: h, w in patches.
    """

    activations: Tensor
    class_token: Tensor
    attention: Tensor | None
    grid: tuple[int, int]


class ClipEncoder:
    """Encode texts and frames as unit vectors whose cosine is their similarity. Frozen, evaluation mode, float32.

    Attributes:
        model: ``transformers.CLIPModel``.
        scale: CLIP's learned factor of the cosine; 100 in OpenAI's checkpoints.
    """

    def __init__(
        self, model: "CLIPModel", tokenizer: "CLIPTokenizer", mean: Sequence[float], std: Sequence[float]
    ) -> None:
        self.model = model.eval().requires_grad_(requires_grad=False)
        self.tokenizer = tokenizer
        self.scale = float(model.logit_scale.exp())
        self.mean, self.std = tuple(mean), tuple(std)
        self.patch: int = model.config.vision_config.patch_size
        self.device: torch.device = model.logit_scale.device

    @torch.inference_mode(mode=False)
    @torch.no_grad()
    def texts(self, sentences: Sequence[str]) -> Tensor:
        """(T, D) unit vectors of the sentences."""
        words = self.tokenizer(list(sentences), padding=True, return_tensors="pt").to(self.device)
        limit = self.model.config.text_config.max_position_embeddings
        if words.input_ids.shape[1] > limit:
            longest = sentences[int(words.attention_mask.sum(1).argmax())]
            raise ColocamError(f"'{longest}' is longer than the {limit} tokens that this CLIP reads: shorten it")
        # a character without a token becomes the end token, and CLIP would ignore the rest of the sentence
        ends = ((words.input_ids == self.tokenizer.eos_token_id) & words.attention_mask.bool()).sum(1)
        if int(ends.max()) > 1:
            wrong = sentences[int(ends.argmax())]
            raise ColocamError(f"the tokenizer of this CLIP cannot spell '{wrong}': {NEEDED}")
        return F.normalize(self.model.get_text_features(**words).pooler_output, dim=1)

    @torch.no_grad()
    def view(self, frames: Tensor, layers: int = 0) -> View:
        """Run the image encoder up to its last attention.

        Args:
            frames: (B, 3, H, W) RGB in 0–255, any size; the position embeddings are interpolated to it. Sides that
                are no multiple of the patch are resized to the next multiple.
            layers: number of last attention maps to average; 0: none.
        """
        vision = self.model.vision_model
        pixels, grid = self._pixels(frames)
        tokens = vision.pre_layrnorm(vision.embeddings(pixels, interpolate_pos_encoding=True))
        *blocks, last = vision.encoder.layers
        attentions: deque[Tensor] = deque(maxlen=layers)
        for block in blocks:
            update, attention = block.self_attn(hidden_states=block.layer_norm1(tokens), attention_mask=None)
            attentions.append(_between_patches(attention))
            tokens = tokens + update
            tokens = tokens + block.mlp(block.layer_norm2(tokens))
        activations = last.layer_norm1(tokens)
        if layers:
            attentions.append(_between_patches(last.self_attn(hidden_states=activations, attention_mask=None)[1]))
        return View(activations, tokens[:, 0], torch.stack(tuple(attentions)).mean(0) if layers else None, grid)

    def embed(self, activations: Tensor, class_token: Tensor) -> Tensor:
        """(B, 1+N, C), (B, C) of a :class:`View` → (B, D) unit vectors of the frames; differentiable."""
        vision = self.model.vision_model
        block = vision.encoder.layers[-1]
        update, _ = block.self_attn(hidden_states=activations, attention_mask=None)
        token = class_token + update[:, 0]  # the outputs of the patch tokens are not needed
        token = token + block.mlp(block.layer_norm2(token))
        return F.normalize(self.model.visual_projection(vision.post_layernorm(token)), dim=1)

    def _pixels(self, frames: Tensor) -> tuple[Tensor, tuple[int, int]]:
        grid = (-(-frames.shape[2] // self.patch), -(-frames.shape[3] // self.patch))
        pixels = frames.to(self.device, torch.float32)
        size = (grid[0] * self.patch, grid[1] * self.patch)
        if size != tuple(frames.shape[2:]):
            pixels = F.interpolate(pixels, size=size, mode="bilinear", align_corners=False)
        mean, std = pixels.new_tensor(self.mean), pixels.new_tensor(self.std)
        return (pixels / 255 - mean[:, None, None]) / std[:, None, None], grid


@torch.inference_mode(mode=False)
def load_encoder(name_or_path: str | Path, device: torch.device | str = "cpu") -> ClipEncoder:
    """Open a CLIP checkpoint in Hugging Face format: a folder, or a name on the hub.

    Weights come from safetensors, or from a ``.bin`` file opened with ``weights_only``; no pickled code is run.
    """
    try:
        from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPTokenizer  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise not_installed(error, "CLIP-ES", "clip") from error
    source = _source(name_or_path)
    try:
        kind = CLIPConfig.get_config_dict(source)[0].get("model_type")
        if kind == "clip":
            tokenizer = CLIPTokenizer.from_pretrained(source)
            processor = CLIPImageProcessor.from_pretrained(source)
            model, report = CLIPModel.from_pretrained(
                source, attn_implementation="eager", dtype=torch.float32, weights_only=True, output_loading_info=True
            )
    except Exception as error:
        raise ColocamError(_refusal(source, error)) from error
    if kind != "clip":
        raise ColocamError(f"config.json of '{source}' has model_type '{kind}', not 'clip': {NEEDED}")
    missing = sorted(report["missing_keys"])
    if missing:  # transformers would use random weights instead
        raise ColocamError(f"'{source}' lacks the weights '{missing[0]}' and {len(missing) - 1} more: {NEEDED}")
    return ClipEncoder(model.to(device), tokenizer, processor.image_mean, processor.image_std)


def _between_patches(attention: Tensor) -> Tensor:
    """(B, heads, 1+N, 1+N) → (B, N, N), mean over heads, without the class token."""
    return attention.mean(1)[:, 1:, 1:]


def _source(name_or_path: str | Path) -> str:
    """The path of a folder, or a name on the hub (also as ``hf-hub:owner/name``, as OpenCLIP writes it)."""
    path = Path(name_or_path).expanduser()
    if path.is_dir():
        return str(path)
    name = str(name_or_path).removeprefix("hf-hub:")
    if path.exists() or isinstance(name_or_path, Path) or not re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", name):
        raise ColocamError(f"no CLIP checkpoint at {name_or_path}: {NEEDED}")
    return name


def _refusal(source: str, error: Exception) -> str:
    cause = first_line(error)
    if Path(source).is_dir():
        return f"cannot read the CLIP checkpoint in {source} ({cause}): {NEEDED}"
    return (
        f"the CLIP checkpoint '{source}' could not be downloaded ({cause}): "
        "check the name and the network, or give a local folder with the checkpoint"
    )
