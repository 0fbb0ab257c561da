"""What a benchmark of a preset needs: a run folder with its network, videos, and a segmenter.

Weights of the encoder are random, since the speed does not depend on them. The decoder and the heads are fitted to the
object in the videos, because the time of the boxes depends on the maps.
"""

import struct
from pathlib import Path

import cv2
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn

from colocam.config import Config
from colocam.config.card import Card
from colocam.models import LocalizerNet, make_classifier
from colocam.models.model_file import Model, save_model
from colocam.segment.sam import MobileSamNet
from colocam.types import Image
from colocam.video.writer import VideoWriter
from lab.measuring import make_frames

TAGS = tuple(f"class {number}" for number in range(10))
WIDTH, HEIGHT = 640, 360
"""Size of the videos."""
SCENES = 64
"""Number of different frames; videos repeat them."""
STEPS = {"cuda": 150, "cpu": 15}
"""Steps that fit the decoder."""
BATCH = 8


def scenes() -> list[Image]:
    """The frames of a video: an object that moves in a circle."""
    squares = make_frames(SCENES, HEIGHT, "scene")[0].permute(0, 2, 3, 1).numpy()
    return [cv2.resize(one, (WIDTH, HEIGHT)).astype("uint8", copy=False) for one in squares]


def write_videos(folder: Path, images: list[Image], frames: int, count: int) -> list[Path]:
    """Write ``count`` videos of ``frames`` frames; they differ in their last bytes, which no decoder reads."""
    folder.mkdir()
    with VideoWriter(folder / "0000.mp4", WIDTH, HEIGHT) as video:
        for index in range(frames):
            video.write(images[index % len(images)])
    content = (folder / "0000.mp4").read_bytes()
    paths = [folder / f"{number:04}.mp4" for number in range(count)]
    for number, path in enumerate(paths):
        path.write_bytes(content + struct.pack(">I4sI", 12, b"free", number))
    return paths


def write_segmenter(path: Path) -> Path:
    """Write MobileSAM with random weights."""
    torch.manual_seed(0)
    net = MobileSamNet()
    nn.init.normal_(net.prompt_encoder.pe_layer.positional_encoding_gaussian_matrix)
    save_file({name: tensor.contiguous() for name, tensor in net.state_dict().items()}, path)
    return path


def write_run(folder: Path, config: Config, device: torch.device) -> Path:
    """Write a run folder with the network of a configuration, as training leaves it."""
    torch.manual_seed(0)
    settings, side = config.stage2("colocam"), config.frames.map_size
    bare = config.backbone.model_copy(update={"pretrained": False, "weights": None})
    classifier = make_classifier(config, bare, len(TAGS))
    net = LocalizerNet(classifier, settings.decoder, map_size=side, crop_head=bool(settings.crop_head)).to(device)
    _fit(net, config.frames.crop, device)
    card = Card(
        method="colocam",
        tags=TAGS,
        size=config.frames.crop,
        threshold=settings.threshold or 0.3,
        threshold_from="tags-only",
        backbone=classifier.encoder.backbone,  # with the normalization, as training stores it
        decoder=settings.decoder,
        presence=(1.0, 0.0),
        color_mean=settings.most_color_mean,
        focus=settings.focus,
        chooser=settings.chooser,
        class_size=config.classifier.size,
        map_size=side,
        normalize=config.classifier.fit == "logistic",
        crop_head=bool(settings.crop_head),
        looks=settings.looks,
    )
    folder.mkdir(exist_ok=True)
    save_model(folder, Model(net.cpu().eval(), card))
    return folder


def _fit(net: LocalizerNet, size: int, device: torch.device) -> None:
    """Fit the decoder to the object of :func:`scenes`, and the heads to what tells its features from the others."""
    frames, maps = (part.to(device) for part in make_frames(SCENES, size, "scene"))
    encoder, head = net.classifier.encoder, net.classifier.head
    for module in encoder.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):  # noqa: SLF001 - the class of all of them
            module.momentum = None  # the mean over all passes in training mode
    with torch.no_grad():
        encoder.train()(frames[:BATCH])
        last = encoder.eval()(frames[:BATCH])[-1]
        weights = F.adaptive_avg_pool2d(maps[:BATCH, None], (last.shape[2], last.shape[3]))
        inside, outside = (_mean(last, part) for part in (weights, 1 - weights))
        for own in (head, net.crop_head):
            if own is not None:
                own.weight.copy_(F.normalize(inside - outside, dim=0) + 0.01 * torch.randn_like(own.weight))
    wanted = F.adaptive_avg_pool2d(maps[:, None], net.map_size or size)[:, 0]
    optimizer = torch.optim.Adam(net.decoder.parameters(), 1e-3)
    net.train()
    for step in range(STEPS[device.type]):
        rows = (torch.arange(BATCH, device=device) * (SCENES // BATCH) + step) % SCENES
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            with torch.no_grad():
                features = encoder(frames[rows])
            background, foreground = net.decode(frames[rows], features).float().unbind(1)
        optimizer.zero_grad()
        torch.autograd.backward(F.binary_cross_entropy_with_logits(foreground - background, wanted[rows]))
        optimizer.step()


def _mean(features: Tensor, weights: Tensor) -> Tensor:
    """Mean (C,) of features (B, C, h, w) with weights (B, 1, h, w)."""
    return (features * weights).sum(dim=(0, 2, 3)) / weights.sum()
