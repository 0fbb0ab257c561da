"""Fit the head that reads the class from a crop around the object; the encoder and the decoder stay as they are.

A whole frame shows the object and its surroundings, and a head for whole frames learns both: in videos of other cameras
the surroundings mislead it. The decoder says where the object is, so a second head learns from crops alone
(docs/method/classifier.md).
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from colocam.config import Config
from colocam.data.augment import whole
from colocam.data.batches import BatchIndices, read_frames
from colocam.data.cache_entry import CachedClip
from colocam.data.samples import Samples
from colocam.models import LocalizerNet
from colocam.models.object_crop import expanded
from colocam.training.frozen_encoder import balance, changed, sample_view, training_frames
from colocam.training.logistic_regression import fit_logistic
from colocam.training.view_features import BATCH, forget_views, view_features
from colocam.utils.prefetch import Tensors
from colocam.utils.progress import progress, raise_if_stopped
from colocam.utils.tensors import generator, load_checkpoint, save_checkpoint

PENALTY = 1e-3
"""λ, ten times that of the head for whole frames: crops of one object resemble each other more than whole frames."""
EXPANSION, SHIFT, ASPECT = (1.0, 2.0), 0.1, 0.2
"""Random crops: sides relative to the box, shift relative to the sides, logarithm of the change of each side."""


def fit_crop_head(
    config: Config, net: LocalizerNet, clips: Sequence[CachedClip], tags: Sequence[str], folder: Path
) -> None:
    """Fit ``net.crop_head`` to the training frames, or load it from the checkpoint ``folder/crop_head``.

    Args:
        config: of the run.
        net: with a trained decoder, on its device, in evaluation mode.
        clips: of the training videos.
        tags: names of the classes in the order of the logits.
        folder: of the method in the run folder.
    """
    head, kept = net.crop_head, folder / "crop_head"
    assert head is not None
    if (saved := load_checkpoint(kept, "best")) is None:
        kept.mkdir(parents=True, exist_ok=True)
        device = head.weight.device
        samples, views = training_frames(config, clips, tags), config.classifier.views
        features = _features(net, samples, config, kept)
        classes, weights = samples.classes.repeat(views), balance(samples, len(tags)).repeat(views)
        weight, bias = fit_logistic(features, classes.to(device), weights.to(device), len(tags), PENALTY)
        tensors = {"weight": weight.float(), "bias": bias.float()}
        save_checkpoint(kept, "best", tensors, {"step": 0})
        forget_views(kept, views)
    else:
        tensors = saved[0]
    head.load_state_dict(tensors)


def _features(net: LocalizerNet, samples: Samples, config: Config, folder: Path) -> Tensor:
    """(V·N, C) features of all views of all frames; view 0 is cut as the class is read later."""
    device, size = next(net.parameters()).device, config.frames.crop
    boxes = _boxes(net, samples, size, device)

    def load(indices: BatchIndices, view: int, batch: int) -> Tensors:
        rows, rng = len(indices.clips), generator(config.seed, "crop views", view, batch)
        own = boxes[batch * BATCH : batch * BATCH + rows]
        crops = expanded(own) if view == 0 else random_crops(own, rng)
        return {"frames": read_frames(samples.clips, indices), "crops": crops, **sample_view(rows, rng)}

    def encode(loaded: Tensors, view: int) -> Tensor:
        frames, crops = whole(loaded["frames"], size), loaded["crops"]
        return net.crop_features(frames, crops) if view == 0 else net.crop_features(changed(frames, loaded), crops)

    return view_features("crop head", samples, folder, config.classifier.views, load, encode, device)


def random_crops(boxes: Tensor, rng: torch.Generator) -> Tensor:
    """Crops (B, 4) around boxes (B, 4) in 0–1, of random size, shape and position; x2 < x1: mirrored."""
    rows, (least, most) = len(boxes), EXPANSION
    factor = least + (most - least) * torch.rand((rows, 1), generator=rng)
    narrower = torch.exp(ASPECT * (2 * torch.rand((rows, 1), generator=rng) - 1))
    shift = SHIFT * (2 * torch.rand((rows, 2), generator=rng) - 1) * (boxes[:, 2:] - boxes[:, :2])
    crops = expanded(boxes + shift.repeat(1, 2), factor * torch.cat([narrower, 1 / narrower], 1))
    mirrored = torch.randint(2, (rows, 1), generator=rng) > 0
    return torch.where(mirrored, crops[:, [2, 1, 0, 3]], crops)


@torch.inference_mode()
def _boxes(net: LocalizerNet, samples: Samples, size: int, device: torch.device) -> Tensor:
    """(N, 4) boxes in 0–1 of the tagged objects, in host memory."""
    parts = []
    with progress("crop head, boxes", len(samples), unit="frames") as advance:
        for frames, classes in samples.batches(size, device):
            map_logits, activations = net.maps(frames)
            parts.append(net.boxes(map_logits, activations, classes).cpu())
            advance(len(classes))
            raise_if_stopped("crop head")
    return torch.cat(parts)
