"""Plot peak memory against the length of a video: python scripts/memory_curve.py OUT.png [FRAMES].

Two runs, each in its own process: generated frames through ``Localizer.stream``, and an H.264 file from decoding to the
annotated video and the table, as in ``colocam localize``. The model is small and untrained, which does not change the
memory. Prints and plots the peak of the resident memory after each number of frames. Linux only.
"""

import argparse
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib as mpl
import torch

from colocam.config import load_config
from colocam.inference import AnnotatedVideo, LocalizationTable, Localizer
from colocam.inference.torch_network import TorchNetwork
from lab.measuring import make_frames
from colocam.models import Classifier, LocalizerNet
from colocam.models.model_file import Card
from colocam.types import VideoFrame
from colocam.utils.prefetch import ahead
from colocam.video.reader import VideoReader
from colocam.video.writer import VideoWriter

SIDE, MODEL = 128, 32
TAGS = ("cat", "dog")
SMALL = (
    "backbone.args={channels: [8, 8, 8, 8], stem_type: deep, stem_width: 4}",
    "localizer.decoder=[8, 8, 8, 8, 8]",
)


def small_localizer() -> Localizer:
    """Open a model of random weights."""
    torch.manual_seed(0)
    config = load_config(overrides=list(SMALL))
    net = LocalizerNet(Classifier(config.backbone, len(TAGS)), config.localizer.decoder)
    card = Card(
        method="colocam",
        tags=TAGS,
        size=MODEL,
        threshold=0.5,
        threshold_from="tags-only",
        backbone=config.backbone,
        decoder=config.localizer.decoder,
    )
    return Localizer(TorchNetwork(net, torch.device("cpu"), size=MODEL), card)


def film(count: int) -> Iterator[VideoFrame]:
    """Yield so many frames, of which each is made when it is asked for."""
    scenes = make_frames(50, SIDE, "scene")[0].permute(0, 2, 3, 1).numpy()
    for index, scene in enumerate(islice(cycle(scenes), count)):
        yield VideoFrame(index, index / 25, scene.copy())


class Peak:
    """Peak of the resident memory while frames pass; what importing libraries took for a moment does not count."""

    def __init__(self) -> None:
        self.mb = 0.0

    def note(self, done: int) -> None:
        """Look at every 20th frame; print at 500, 1000, 2000, 4000 and so on."""
        if done % 20 == 0:
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
            self.mb = max(self.mb, pages * resource.getpagesize() / 2**20)
        if done % 500 == 0 and (done // 500).bit_count() == 1:
            print(done, round(self.mb, 1), flush=True)


def frames_curve(count: int) -> None:
    """Frames in memory to boxes."""
    peak = Peak()
    for done, _ in enumerate(small_localizer().stream(film(count)), start=1):
        peak.note(done)


def file_curve(count: int) -> None:
    """A file to an annotated file and a table."""
    with TemporaryDirectory() as folder:
        source = Path(folder) / "film.mp4"
        with VideoWriter(source, SIDE, SIDE) as video:
            for frame in film(count):
                video.write(frame.image, frame.pts)
        localizer, peak = small_localizer(), Peak()
        with (
            VideoReader(source) as reader,
            LocalizationTable(Path(folder) / "out.csv") as listed,
            AnnotatedVideo(Path(folder) / "out.mp4", reader.info) as drawn,
            closing(ahead(localizer.stream(reader.frames()), 4, "boxes")) as found,
        ):
            for done, (frame, one) in enumerate(found, start=1):
                listed.write(one)
                drawn.write(frame.image, one)
                peak.note(done)


CURVES = {"frames in memory → boxes": frames_curve, "H.264 file → annotated H.264 file and table": file_curve}


def main(target: Path, count: int) -> None:
    """Measure each curve in a process of its own, print and draw."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the choice of a backend

    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    highest = 0.0
    for name in CURVES:
        command = [sys.executable, __file__, str(target), str(count), "--curve", name]
        told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        print(name, told, sep="\n", flush=True)
        done, mb = zip(*([float(word) for word in line.split()] for line in told.splitlines()), strict=True)
        axes.plot(done, mb, marker="o", markersize=4, label=name)
        highest = max(highest, *mb)
    axes.set(xscale="log", xlabel="frames", ylabel="peak memory (MB)", ylim=(0, 1.3 * highest))
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(target, dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("frames", type=int, nargs="?", default=32_000)
    parser.add_argument("--curve", choices=list(CURVES), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.curve:
        CURVES[arguments.curve](arguments.frames)
    else:
        main(arguments.out, arguments.frames)
