import numpy as np
import pytest

from colocam.evaluation.metrics import (
    Frames,
    best_threshold,
    box_hits,
    corloc,
    max_box_acc,
    top_k,
)
from colocam.evaluation.metrics.protocols import GRID as CHOOSER_GRID
from colocam.evaluation.metrics.protocols import chooser_threshold

NAMES = ("bird", "cat", "dog")
GRID = np.arange(20) / 20


def world(seed=0, size=240):
    """Frames whose box is right between two thresholds; classes differ in where and videos in how well."""
    generator = np.random.default_rng(seed)
    tags = generator.choice(3, size, p=[0.6, 0.3, 0.1])
    tags[:3] = [0, 1, 2]
    videos = tags * 100 + generator.integers(0, 6, size)
    middle = np.array([0.2, 0.5, 0.8])[tags] + generator.normal(0, 0.1, size)
    width = np.where(videos % 2, 0.2, 0.08)
    hits = abs(GRID - middle[:, None]) < width[:, None]
    return hits, Frames(NAMES, tags, videos), generator.random(size) < 0.7


def by_hand(hits, frames, chosen):
    """CorLoc of each class at its threshold, frame by frame."""
    return [
        100 * np.mean([hits[i, chosen[c]] for i in range(len(hits)) if frames.tags[i] == c])
        for c in range(len(frames.names))
    ]


def evaluate(**options):
    hits, frames, classified = world()
    defaults = {"tags_only": 0.5, "top1": classified}
    return corloc(hits, frames, GRID, **(defaults | options))


def index(threshold):
    return int(np.argmin(abs(GRID - threshold)))


def test_each_protocol_takes_its_own_threshold():
    """The best of each class, the best over frames, that given, and the best over the classes of other frames."""
    hits, frames, _ = world()
    others = world(seed=9, size=90)[:2]
    result = evaluate(tags_only=0.36, validation=others)
    for cell in result.values():
        own = cell.threshold if isinstance(cell.threshold, dict) else dict.fromkeys(NAMES, cell.threshold)
        chosen = [index(own[name]) for name in NAMES]
        expected = by_hand(hits, frames, chosen)
        assert [cell.classes[name] for name in NAMES] == pytest.approx(expected)
        assert cell.average == pytest.approx(np.mean(expected))
        assert cell.frames == pytest.approx(100 * hits[np.arange(len(hits)), np.array(chosen)[frames.tags]].mean())
    best = np.max([by_hand(hits, frames, [t] * 3) for t in range(len(GRID))], axis=0)
    assert [result["oracle-per-class"].classes[name] for name in NAMES] == pytest.approx(best)
    assert result["oracle-global"].frames == pytest.approx(100 * hits.mean(0).max())
    assert result["tags-only"].threshold == pytest.approx(0.35)
    means = [np.mean(by_hand(*others, [t] * 3)) for t in range(len(GRID))]
    assert means[index(result["validation"].threshold)] == pytest.approx(max(means))


def test_intervals_hold_the_number_and_grow_when_videos_are_fewer():
    hits, frames, classified = world()
    many = evaluate()["tags-only"]
    assert many.interval[0] < many.average < many.interval[1]
    assert many.top1.interval[0] < many.top1.average < many.top1.interval[1]
    coarse = Frames(NAMES, frames.tags, frames.videos % 2)
    few = corloc(hits, coarse, GRID, tags_only=0.5, top1=classified)["tags-only"]
    assert np.ptp(few.interval) > 1.5 * np.ptp(many.interval)
    assert evaluate() == evaluate()


def test_middle_of_equally_good_thresholds():
    frames = Frames(("cat",), np.zeros(2, np.int64), np.arange(2))
    hits = np.zeros((2, 10), bool)
    hits[:, 3:8] = True
    assert best_threshold(hits, frames, np.arange(10) / 10) == 0.5
    assert best_threshold(hits[:, ::-1], frames, np.arange(10)[::-1] / 10) == 0.5


def test_top_k_against_sorting():
    generator = np.random.default_rng(0)
    logits, tags = generator.normal(size=(50, 8)), generator.integers(0, 8, 50)
    for k in (1, 2, 5, 8):
        expected = [tag in np.argsort(-row)[:k] for row, tag in zip(logits, tags, strict=True)]
        assert top_k(logits, tags, k).tolist() == expected


def test_max_box_acc_takes_the_best_threshold_for_each_overlap():
    hits = np.array([[[1, 1, 0], [0, 1, 0]], [[0, 1, 1], [0, 0, 1]], [[0, 0, 0], [1, 0, 0]]], bool)
    assert max_box_acc(hits) == pytest.approx({"0.3": 100, "0.5": 100, "0.7": 50, "mean": 250 / 3})


def test_for_the_largest_contour_it_is_the_best_of_the_grid():
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:32, :32]
    centers, widths = rng.uniform(8, 24, (12, 2)), rng.uniform(3, 7, 12)
    bumps = [np.exp(-((x - a) ** 2 + (y - b) ** 2) / (2 * w * w)) for (a, b), w in zip(centers, widths, strict=True)]
    maps = (255 * np.stack(bumps)).astype(np.uint8)
    radii = widths * np.sqrt(2 * np.log(1 / 0.3))  # the box at τ = 0.3
    true = [np.array([[a - r, b - r, a + r, b + r]]).clip(0, 31) for (a, b), r in zip(centers, radii, strict=True)]
    frames = Frames(("cat", "dog"), np.arange(12) % 2, np.arange(12).astype(str))
    threshold, corloc = chooser_threshold(maps, true, frames, "largest", np.arange(12))
    hits = box_hits(maps, true, CHOOSER_GRID)
    means = 100 * (hits[::2].mean(0) + hits[1::2].mean(0)) / 2
    assert corloc == means.max()
    assert threshold in CHOOSER_GRID[means == means.max()]
    assert means[CHOOSER_GRID < 0.09].max() < corloc  # the grid does tell thresholds apart
