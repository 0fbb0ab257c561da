"""Checkpoints: a pair that is never half new, without pickle, and damage named in one line."""

import os

import pytest
import torch

from colocam.errors import ColocamError
from colocam.utils import tensors as checkpoint
from colocam.utils.tensors import load_checkpoint, save_checkpoint


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def pair(tmp_path):
    save_checkpoint(tmp_path, "last", {"w": torch.arange(6.0).view(2, 3)}, {"step": 1, "epoch": 0})
    return tmp_path


def test_stale_tensors_are_removed_and_other_names_left(pair):
    save_checkpoint(pair, "best", {"w": torch.zeros(1)}, {"step": 1})
    save_checkpoint(pair, "last", {"w": torch.zeros(1)}, {"step": 2})
    assert names(pair) == ["best-0000001.safetensors", "best.json", "last-0000002.safetensors", "last.json"]


@pytest.mark.parametrize("part", ["save_tensors", "write_json"])
def test_a_crash_in_either_write_leaves_the_old_pair(pair, monkeypatch, part):
    def crash(*_):
        raise OSError("power cut")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, part, crash)
        with pytest.raises(OSError, match="power cut"):
            save_checkpoint(pair, "last", {"w": torch.zeros(9)}, {"step": 2, "epoch": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        save_checkpoint(pair, "last", {"w": torch.zeros(9)}, {"step": 2, "score": float("nan")})
    tensors, state = load_checkpoint(pair, "last")
    assert (state["step"], state["epoch"]) == (1, 0)
    assert torch.equal(tensors["w"], torch.arange(6.0).view(2, 3))
    save_checkpoint(pair, "last", {"w": torch.zeros(9)}, {"step": 3})
    assert names(pair) == ["last-0000003.safetensors", "last.json"]


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"weights": "gone.safetensors"}', "\x00\x00", "3", 0, 40])
def test_damage_is_named_with_its_remedy(pair, content):
    """Of the state, or of the tensors, of which so many bytes are left."""
    if isinstance(content, int):
        os.truncate(pair / "last-0000001.safetensors", content)
    else:
        (pair / "last.json").write_text(content, encoding="utf-8")
    with pytest.raises(ColocamError, match="is damaged") as damaged:
        load_checkpoint(pair, "last")
    assert str(pair / "last.json") in str(damaged.value)
    assert f"delete {pair} to train this part again" in str(damaged.value)
