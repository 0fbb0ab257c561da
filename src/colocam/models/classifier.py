"""The classifier g: encoder, global average pooling and a linear layer. Pr(k | X) = softmax(g(X))_k."""

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from colocam.config import Backbone, Config
from colocam.models.resnet import Trunk, build_resnet, is_plain_resnet

LEAST_WEIGHT = 1e-6
"""Sum of the weights of a frame at least, where the map is empty."""


class Encoder(nn.Module):
    """Frames → feature maps, finest first.

    Attributes:
        channels: channels of each feature map, finest first.
        decoder: which decoder fits them.
        backbone: settings that rebuild this network without initial weights, independent of timm's defaults.
    """

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        network, self.channels, self._last_stage, self.decoder = _build(backbone)
        self.network = network.to(memory_format=torch.channels_last)
        mean, std = _normalization(backbone)
        self.backbone = backbone.model_copy(update={"pretrained": False, "weights": None, "mean": mean, "std": std})
        self.normalize()

    def normalize(self) -> None:
        """Set mean and standard deviation in 0–255, (1, 3, 1, 1), which are not stored with the weights."""
        for name, values in (("mean", self.backbone.mean), ("std", self.backbone.std)):
            # a product of tensors that have no memory yet would import torch's compiler, for seconds
            levels = np.array(values, np.float32) * np.float32(255)
            self.register_buffer(name, torch.tensor(levels.reshape(1, 3, 1, 1).tolist()), persistent=False)

    def forward(self, frames: Tensor) -> list[Tensor]:
        """(B, 3, H, W) RGB in 0–255, any dtype → features [(B, C_i, H_i, W_i)], finest first."""
        assert isinstance(self.mean, Tensor)
        assert isinstance(self.std, Tensor)
        normalized = (frames.to(self.mean.dtype) - self.mean) / self.std
        features: list[Tensor] = self.network(normalized.contiguous(memory_format=torch.channels_last))
        return features

    def last_stage(self) -> list[nn.Parameter]:
        """Parameters after the last but one feature map."""
        return [p for name, p in self.network.named_parameters() if name.startswith(self._last_stage)]


def _build(backbone: Backbone) -> Trunk:
    if is_plain_resnet(backbone):
        return build_resnet(backbone)
    from colocam.models.networks import build_with_timm  # noqa: PLC0415 - timm and torchvision take seconds to import

    return build_with_timm(backbone)


def _normalization(backbone: Backbone) -> tuple[tuple[float, ...], tuple[float, ...]]:
    if backbone.mean is not None and backbone.std is not None:
        return backbone.mean, backbone.std
    from colocam.models.timm_networks import normalization  # noqa: PLC0415

    return normalization(backbone)


def at_side(images: Tensor, side: int) -> Tensor:
    """Average (B, C, H, H) float images down to (B, C, side, side): means over squares of pixels; side divides H."""
    return images if images.shape[-1] == side else F.avg_pool2d(images, images.shape[-1] // side)


class Classification(NamedTuple):
    """Output of the classifier.

    Attributes:
        logits: (B, K).
        features: the encoder's feature maps [(B, C_i, h_i, w_i)] of the whole frames, finest first.
    """

    logits: Tensor
    features: list[Tensor]


class Classifier(nn.Module):
    """Frames → logits of the tags, and the encoder's features.

    What an object is and where it is need not be read at one size: a pretrained network knows classes best at the size
    it was trained on, and larger frames give finer maps. The logits come from the frames averaged down to
    ``size`` × ``size``, the features from the frames as they are.

    Args:
        backbone: the encoder.
        classes: K.
        size: side in pixels that the class is read at; it divides the side of the frames. None: that of the frames.
        normalize: divide the pooled features by their Euclidean norm.
    """

    def __init__(self, backbone: Backbone, classes: int, *, size: int | None = None, normalize: bool = False) -> None:
        super().__init__()
        self.encoder = Encoder(backbone)
        self.head = nn.Linear(self.encoder.channels[-1], classes)
        self.size, self.normalize = size, normalize

    def forward(self, frames: Tensor) -> Classification:
        """(B, 3, H, W) RGB in 0–255 → logits (B, K) and features."""
        features = self.encoder(frames)
        return Classification(self.logits(frames, features), features)

    def logits(self, frames: Tensor, features: list[Tensor] | None = None) -> Tensor:
        """(B, K) of (B, 3, H, W) frames; their ``features`` save a pass where the class is read at their size."""
        return self.read(self.last(frames, features))

    def last(self, frames: Tensor, features: list[Tensor] | None = None) -> Tensor:
        """The last feature map (B, C, h, w) of frames at the size that the class is read at, as :meth:`logits`."""
        small = self.class_frames(frames)
        if features is None or small is not frames:
            features = self.encoder(small)
        return features[-1]

    def read(self, last: Tensor) -> Tensor:
        """Logits (B, K) of a last feature map (B, C, h, w) of any size."""
        logits: Tensor = self.head(self.pooled(last))
        return logits

    def class_frames(self, frames: Tensor) -> Tensor:
        """The frames at the size that the class is read at: means over squares of pixels."""
        if self.size is None or frames.shape[-1] == self.size:
            return frames
        # in float32 also where the weights are bfloat16, which has eight bits: a mean of pixels needs more
        floats = frames if frames.is_floating_point() else frames.float()
        return at_side(floats, self.size)

    def pooled(self, last: Tensor, weights: Tensor | None = None) -> Tensor:
        """The input of the head, (B, C), from the last feature map (B, C, h, w): its mean, or the weighted mean.

        Args:
            last: the feature map.
            weights: (B, 1, h, w), not negative.
        """
        if weights is None:
            mean = last.mean(dim=(2, 3))
        else:
            mean = (last * weights).sum(dim=(2, 3)) / weights.sum(dim=(2, 3)).clamp(min=LEAST_WEIGHT)
        return F.normalize(mean, dim=1) if self.normalize else mean

    def scaled(self, values: Tensor, last: Tensor) -> Tensor:
        """``values`` (B, …) divided by the norm of each frame's pooled features, where the head takes these so.

        For the last feature map itself, A = ``scaled(last, last)``, the head's logits are ``W mean(A) + b``.
        """
        if not self.normalize:
            return values
        norms: Tensor = torch.linalg.vector_norm(last.mean(dim=(2, 3)), dim=1).clamp(min=1e-12)
        return values / norms.view(-1, *[1] * (values.dim() - 1))


def make_classifier(config: Config, backbone: Backbone, classes: int) -> Classifier:
    """The classifier of a configuration; ``backbone`` is ``config.backbone``, or the same without initial weights."""
    settings = config.classifier
    return Classifier(backbone, classes, size=settings.size, normalize=settings.fit == "logistic")
