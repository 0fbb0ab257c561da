"""A plain vision transformer, whose patch tokens form one feature map.

The paper names it as future work. It also works with self-supervised weights (DINO, DINOv2, DINOv3).
"""

from timm.models.eva import Eva
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn

from colocam.config import Backbone
from colocam.errors import ColocamError
from colocam.models.timm_networks import Trunk, create
from colocam.models.weights import load_weights

FAMILIES = frozenset({"vision_transformer", "deit", "eva"})
"""Modules of timm with plain transformers that accept frames of any size."""


class Vit(nn.Module):
    """Frames → patch tokens of the last block after the final norm, as a feature map."""

    def __init__(self, vit: VisionTransformer | Eva) -> None:
        super().__init__()
        self.vit = vit

    def forward(self, frames: Tensor) -> list[Tensor]:
        """(B, 3, H, W), H and W multiples of the patch p → one map (B, C, H/p, W/p)."""
        height, width = self.vit.patch_embed.patch_size
        if frames.shape[2] % height or frames.shape[3] % width:
            raise ColocamError(
                f"frames of {frames.shape[3]}×{frames.shape[2]} pixels do not divide into patches of {width}×{height}: "
                f"set frames.crop to a multiple of {width}"
            )
        maps = self.vit.forward_intermediates(frames, indices=1, norm=True, output_fmt="NCHW", intermediates_only=True)
        assert isinstance(maps, list)
        return maps


def build_vit(backbone: Backbone) -> Trunk:
    """Build a transformer of timm; its patch size replaces ``backbone.output_stride``."""
    vit = create(backbone, num_classes=0, dynamic_img_size=True)
    vit.attn_pool = None  # the classifier averages the tokens, also where timm pools by attention
    if backbone.weights is not None:
        load_weights(vit, backbone.weights)
    if isinstance(vit.norm, nn.Identity):  # timm normalises the mean of the tokens there; normalise each token
        vit.norm, vit.fc_norm = vit.fc_norm, vit.norm
    return Trunk(Vit(vit), [vit.embed_dim], (f"vit.blocks.{len(vit.blocks) - 1}.", "vit.norm."))
