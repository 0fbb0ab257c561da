"""A plausible run folder, fabricated: what training and evaluation leave behind."""

import json
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest

from colocam.evaluation.cases import case_meta, write_cases
from colocam.types import Clip
from tests.helpers.counting import inclusive_iou
from tests.helpers.evaluations import evaluation

STORED = Path(__file__).parents[1] / "stored" / "version-0.1.0" / "run"
TAGS = ["bicycle", "kite", "кошка", "<script>alert(1)</script>", "a$b_c tag"]
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
    shutil.copy(STORED / "metrics.jsonl", folder)
    (folder / "evaluation.json").write_text(json.dumps(evaluation(tags=TAGS, methods=methods)))
    write_examples(folder / "cases.npz", methods, per_group, side, random)
    return folder


def write_examples(path, methods, per_group, side, random):
    groups = [group for group in GROUPS for _ in range(per_group)]
    coarse = random.integers(30, 200, (len(groups), 6, 6, 3), dtype=np.uint8)
    images = np.stack([cv2.resize(one, (side, side), interpolation=cv2.INTER_CUBIC) for one in coarse])
    truth, meta = [], []
    found = {method: [] for method in methods}
    for i, group in enumerate(groups):
        x, y = random.integers(5, side // 2, 2)
        true = np.array([x, y, *(np.array([x, y]) + random.integers(side // 4, side // 2, 2))])
        truth.append(np.zeros((0, 4)) if group == "empty" else true[None])
        for method in methods:
            drift = {"best": 1, "typical": 4, "worst": 15, "empty": 10}[group] * (2 if method == "layercam" else 1)
            box = np.clip(true + random.uniform(-drift, drift, 4), 0, side - 1).astype(np.float32)
            overlap = np.nan if group == "empty" else inclusive_iou(true, box)
            found[method].append((np.full(4, np.nan) if (group, method) == ("empty", "colocam") else box, overlap))
        tag = TAGS[i % len(TAGS)]
        clip = Clip(f"{tag}/video-{i:02d}", tag, "test", path, "")
        meta.append(case_meta(clip, 7 * i, TAGS[0] if i % 4 == 0 else tag, 0.93, group))
    maps = np.tile(np.linspace(0, 255, side // 2).astype(np.uint8), (len(groups), side // 2, 1))
    results = {method: (maps, *map(np.array, zip(*rows, strict=True))) for method, rows in found.items()}
    write_cases(path, images, truth, meta, results)


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


@pytest.fixture
def add_review():
    """``add_review(run, (clip, frame), …)`` stores doubtful frames."""

    def add(run, *frames):
        told = {"tag": "<i>", "doubt": 0.876, "reason": "a & b", "predicted": "x", "probability": 0.5}
        meta = [{**told, "clip": clip, "frame": frame} for clip, frame in frames]
        image, boxes = np.zeros((len(frames), 20, 20, 3), np.uint8), np.full((len(frames), 4), np.nan, np.float32)
        np.savez(run / "review.npz", images=image, heatmaps=image[..., 0], boxes=boxes, meta=np.array(json.dumps(meta)))

    return add
