"""Measure what the fence around decoders costs: frames to boxes with and without it, turn by turn."""

import argparse
import statistics
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from colocam.config import load_config
from colocam.inference.localizer import Localizer
from colocam.inference.torch_network import TorchNetwork
from colocam.lab.measuring.synthetic_frames import make_frames
from colocam.models import LocalizerNet, make_classifier
from colocam.models.model_file import Card
from colocam.video.fence import FencedReader
from colocam.video.reader import VideoReader
from colocam.video.writer import VideoWriter

WIDTH, HEIGHT, FRAMES = 640, 360, 300


def main() -> None:
    """Print milliseconds per frame and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--preset", default="cpu")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    config, device = load_config(arguments.preset, overrides=["backbone.pretrained=false"]), torch.device(arguments.device)
    tags, decoder = ("a", "b", "c"), config.stage2("colocam").decoder
    net = LocalizerNet(make_classifier(config, config.backbone, len(tags)), decoder).eval()
    card = Card(
        method="colocam",
        tags=tags,
        size=config.frames.crop,
        threshold=0.3,
        threshold_from="tags-only",
        backbone=config.backbone,
        decoder=decoder,
    )
    localizer = Localizer(TorchNetwork(net, device, size=card.size), card)
    with TemporaryDirectory() as folder:
        film = Path(folder) / "film.mp4"
        scenes = make_frames(30, WIDTH, "scene")[0].permute(0, 2, 3, 1).numpy()[:, :HEIGHT]
        with VideoWriter(film, WIDTH, HEIGHT) as video:
            for index in range(FRAMES):
                video.write(np.ascontiguousarray(scenes[index % len(scenes)]))
        times: dict[type, list[float]] = {VideoReader: [], FencedReader: []}
        for turn in range(1 + arguments.turns):
            for reader in times:
                start = time.perf_counter()
                with reader(film) as opened, closing(localizer.stream(opened.frames())) as stream:
                    count = sum(1 for _ in stream)
                assert count == FRAMES
                if turn:
                    times[reader].append(1e3 * (time.perf_counter() - start) / FRAMES)
    plain, fenced = (statistics.median(one) for one in times.values())
    print(f"in this process {plain:.2f} ms a frame, fenced {fenced:.2f} ms: {100 * (fenced / plain - 1):+.1f} %")
    ratios = [b / a for a, b in zip(*times.values(), strict=True)]
    print(f"ratio turn by turn: median {statistics.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}")


if __name__ == "__main__":
    main()
