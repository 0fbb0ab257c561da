import numpy as np
import pytest

from colocam.evaluation.metrics import max_box_acc, top_k


def test_top_k_against_sorting():
    generator = np.random.default_rng(0)
    logits, tags = generator.normal(size=(50, 8)), generator.integers(0, 8, 50)
    for k in (1, 2, 5, 8):
        expected = [tag in np.argsort(-row)[:k] for row, tag in zip(logits, tags, strict=True)]
        assert top_k(logits, tags, k).tolist() == expected


def test_top_k_gives_no_credit_for_a_classifier_that_says_nothing():
    assert not top_k(np.zeros((4, 3)), np.arange(3).repeat(2)[:4], 2).any()


def test_max_box_acc_takes_the_best_threshold_for_each_overlap():
    hits = np.array([[[1, 1, 0], [0, 1, 0]], [[0, 1, 1], [0, 0, 1]], [[0, 0, 0], [1, 0, 0]]], bool)
    assert max_box_acc(hits) == pytest.approx({"0.3": 100, "0.5": 100, "0.7": 50, "mean": 250 / 3})
