"""A plausible run folder, fabricated: what training and evaluation leave behind."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

TAGS = ["bicycle", "kite", "кошка", "<script>alert(1)</script>", "a$b_c tag"]
PROTOCOLS = ("oracle-per-class", "oracle-global", "validation", "tags-only")
LEVELS = {"layercam": 52.0, "fcam": 58.0, "tcam": 63.0, "colocam": 74.0}
GROUPS = ("best", "typical", "worst", "empty")


def fabricate(folder: Path, methods=("layercam", "fcam", "colocam"), per_group=3, side=112, seed=0) -> Path:
    """Write every file that the report reads, with numbers that hang together."""
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text("preset: cpu\nframes:\n  crop: 112  # <b>square</b>\nseed: 0\n")
    (folder / "environment.json").write_text(
        json.dumps(
            {"colocam": "0.1.0", "python": "3.12.3", "device": {"name": "cpu", "threads": 2}, "argv": ["a", "b"]}
        )
    )
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in metrics_lines(methods, random)))
    (folder / "evaluation.json").write_text(json.dumps(evaluation(methods, random)))
    write_cases(folder / "cases.npz", methods, per_group, side, random)
    return folder


def metrics_lines(methods, random):
    for phase in ("classifier", *(method for method in methods if method != "layercam")):
        for step in range(1, 241):
            progress = step / 240
            line = {
                "phase": phase,
                "event": "train",
                "epoch": step // 40,
                "step": step,
                "lr": 0.01 * 0.9 ** (step // 80),
            }
            line["loss"] = 0.2 + 1.5 * np.exp(-4 * progress) + 0.08 * random.standard_normal()
            if phase != "classifier":
                line |= {"seeds": 0.7 * line["loss"], "crf": 1e-4 * (2 - progress), "size": -0.05 - 0.01 * progress}
            if phase == "colocam":
                line["coloc"] = -0.3 * progress + 0.02 * random.standard_normal()
            yield line
            if step % 40 == 0:
                val = {"phase": phase, "event": "val", "epoch": step // 40, "step": step, "loss": line["loss"] + 0.2}
                key = "accuracy" if phase == "classifier" else "criterion"
                val[key] = 0.4 + 0.5 * progress
                yield val if phase == "classifier" else val | {"threshold": 0.4, "corloc": 40 + 30 * progress}


def evaluation(methods, random):
    result = {"format": 2, "methods": {}}
    for method in methods:
        result["methods"][method] = {}
        for bonus, protocol in zip((9.0, 6.0, 2.0, 0.0), PROTOCOLS, strict=True):
            values = np.clip(LEVELS[method] + bonus + random.normal(0, 12, len(TAGS)), 0, 100)
            average = float(values.mean())
            threshold = dict.fromkeys(TAGS, 0.3) if protocol == "oracle-per-class" else 0.43
            result["methods"][method][protocol] = {
                "average": average,
                "classes": dict(zip(TAGS, values.tolist(), strict=True)),
                "frames": average - 1.5,
                "interval": [average - 6.1, average + 5.4],
                "threshold": threshold,
                "top1": {"average": 0.85 * average, "interval": [0.8 * average, 0.9 * average]},
            }
    per_class = dict(zip(TAGS, random.uniform(70, 100, len(TAGS)).tolist(), strict=True))
    result["classification"] = {"accuracy": 87.5, "interval": [80.1, 93.0], "classes": per_class}
    result["data"] = {"split": "test", "frames": 300, "clips": 18, "videos": 18}
    return result


def write_cases(path, methods, per_group, side, random):
    groups = [group for group in GROUPS for _ in range(per_group)]
    count = len(groups)
    images = np.stack([scene(side, random) for _ in groups])
    truth = np.full((count, 2, 4), np.nan, np.float32)
    arrays = {f"{kind}__{method}": [] for method in methods for kind in ("heatmaps", "boxes", "iou")}
    meta = []
    for i, group in enumerate(groups):
        x, y = random.integers(5, side // 2, 2)
        w, h = random.integers(side // 4, side // 2, 2)
        if group != "empty":
            truth[i, 0] = x, y, min(x + w, side - 1), min(y + h, side - 1)
            cv2.rectangle(
                images[i], (int(x), int(y)), (int(x + w), int(y + h)), random.integers(90, 255, 3).tolist(), -1
            )
        for method in methods:
            drift = {"best": 2, "typical": 8, "worst": 30, "empty": 20}[group] * (2 if method == "layercam" else 1)
            box = np.clip(np.array([x, y, x + w, y + h]) + random.normal(0, drift, 4), 0, side - 1)
            box = np.array([*np.minimum(box[:2], box[2:]), *np.maximum(box[:2], box[2:])], np.float32)
            missing = group == "empty" and method == "colocam"
            arrays[f"heatmaps__{method}"].append(bump(side, box, soft=method == "layercam"))
            arrays[f"boxes__{method}"].append(np.full(4, np.nan, np.float32) if missing else box)
            arrays[f"iou__{method}"].append(np.float32("nan") if group == "empty" else overlap(truth[i, 0], box))
        tag = TAGS[i % len(TAGS)]
        meta.append(
            {
                "clip": f"{tag}/video-{i:02d}",
                "frame": 7 * i,
                "tag": tag,
                "predicted": TAGS[0] if i % 4 == 0 else tag,
                "probability": 0.93,
                "group": group,
            }
        )
    stacked = {name: np.stack(values) for name, values in arrays.items()}
    np.savez_compressed(path, images=images, truth=truth, meta=np.array(json.dumps(meta)), **stacked)


def scene(side, random):
    """A cluttered background."""
    coarse = random.integers(30, 200, (6, 6, 3), dtype=np.uint8)
    return cv2.resize(coarse, (side, side), interpolation=cv2.INTER_CUBIC)


def bump(side, box, *, soft):
    """A map that is high around ``box``, half the picture's size."""
    half = side // 2
    ys, xs = np.mgrid[:half, :half] * 2.0
    x1, y1, x2, y2 = box
    far = ((xs - (x1 + x2) / 2) / (x2 - x1 + 6)) ** 2 + ((ys - (y1 + y2) / 2) / (y2 - y1 + 6)) ** 2
    return np.round(255 * np.exp(-far * (6 if soft else 3)) ** (1 if soft else 0.6)).astype(np.uint8)


def overlap(a, b):
    """IoU of two boxes."""
    wide = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    high = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    both = wide * high
    return np.float32(both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both))


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> Path:
    """A whole run, to be read only."""
    return fabricate(tmp_path_factory.mktemp("report") / "demo run")


@pytest.fixture
def make_run(tmp_path):
    """Make a run with few curves, quick to draw: tests may change it."""

    def make(name="run", **options):
        folder = fabricate(tmp_path / name, **{"per_group": 1} | options)
        lines = (folder / "metrics.jsonl").read_text().splitlines()
        (folder / "metrics.jsonl").write_text("\n".join(line for line in lines if "classifier" in line))
        return folder

    return make


@pytest.fixture
def run(make_run) -> Path:
    return make_run()
