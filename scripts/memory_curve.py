"""Plot peak memory against length: python scripts/memory_curve.py MODEL OUT.png [--frames 100 1000 10000].

For each number of frames ``colocam localize --no-video`` runs on one generated video of so many frames, and on a folder
of ten videos that have as many in all. The peak is that of all processes of the command together: the largest sum of
their proportional memory (PSS), read from /proc ten times a second. Linux only. Prints one line per run. The figure is
drawn again after each run, so Ctrl-C leaves one of the runs that have ended. Options that this script does not know,
such as ``--looks 1``, are those of ``colocam localize``.
"""

import argparse
import subprocess
import sys
import time
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib as mpl
import numpy as np

from colocam.video.writer import VideoWriter

WIDTH, HEIGHT = 160, 120
VIDEOS = 10
"""Videos of the folder."""


def write_video(path: Path, count: int) -> Path:
    """Write a colored square that moves over noise; the frames repeat after 50."""
    random = np.random.default_rng(0)
    images = random.integers(90, 140, (50, HEIGHT, WIDTH, 3)).astype(np.uint8)
    for place, image in enumerate(images):
        image[40:80, 2 * place : 2 * place + 40] = (220, 60, 40)
    path.parent.mkdir(parents=True, exist_ok=True)
    with VideoWriter(path, WIDTH, HEIGHT) as video:
        for number, image in enumerate(islice(cycle(images), count)):
            video.write(image, number / 25)
    return path


def family(root: int) -> list[int]:
    """A process and all that descend from it."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    members = [root]
    for member in members:
        members += parents.get(member, [])
    return members


def memory_mb(root: int) -> float:
    """Proportional memory of a process and of all that descend from it, in MB."""
    total = 0
    for member in family(root):
        try:
            rollup = Path(f"/proc/{member}/smaps_rollup").read_text(encoding="ascii")
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return total / 1024


def peak_mb(model: str, source: Path, out: Path, options: list[str]) -> float:
    """Run the command and give the peak of its memory in MB."""
    command = [sys.executable, "-m", "colocam", "localize", model, str(source), "-o", str(out), "--no-video"]
    command += options
    peak = 0.0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            peak = max(peak, memory_mb(process.pid))
            time.sleep(0.1)
    if process.returncode:
        raise SystemExit(f"error: {' '.join(command)} ended with {process.returncode}")
    return peak


def measure(model: str, counts: list[int], target: Path, options: list[str]) -> None:
    """Draw the peaks of one video and of a folder for each number of frames."""
    peaks: dict[str, list[float]] = {"one video": [], f"a folder of {VIDEOS} videos": []}
    single, folder = peaks.values()
    with TemporaryDirectory() as name:
        work = Path(name)
        for count in counts:
            video = write_video(work / f"{count}.mp4", count)
            single.append(peak_mb(model, video, work / f"out-{count}", options))
            print(f"one video of {count} frames: {single[-1]:.0f} MB", flush=True)
            draw(target, counts, peaks)
            videos = work / f"folder-{count}"
            for number in range(VIDEOS):
                write_video(videos / f"{number:05}.mp4", max(1, count // VIDEOS))
            folder.append(peak_mb(model, videos, work / f"outs-{count}", options))
            print(f"a folder of {VIDEOS} videos with {count} frames in all: {folder[-1]:.0f} MB", flush=True)
            draw(target, counts, peaks)


def draw(target: Path, counts: list[int], peaks: dict[str, list[float]]) -> None:
    """Plot the peaks against the number of frames."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the choice of a backend

    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    for label, values in peaks.items():
        axes.plot(counts[: len(values)], values, marker="o", markersize=4, label=label)
    highest = max(max(values, default=0.0) for values in peaks.values())
    axes.set(xscale="log", xlabel="frames in all", ylabel="peak memory (MB)", ylim=(0, 1.3 * highest))
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(target, dpi=110)
    plt.close(figure)


def main() -> None:
    """Measure and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a run folder or an ONNX file")
    parser.add_argument("out", type=Path, help="the figure")
    parser.add_argument("--frames", type=int, nargs="+", default=[100, 1000, 10_000], help="numbers of frames")
    arguments, options = parser.parse_known_args()
    measure(arguments.model, arguments.frames, arguments.out, options)


if __name__ == "__main__":
    main()
