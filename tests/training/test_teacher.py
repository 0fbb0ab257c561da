"""A trained run teaches another network; tests/presets trains one with a teacher."""

import shutil

import pytest

from colocam import load_config, train
from colocam.errors import ColocamError


def test_a_teacher_of_other_tags_is_refused_before_training(trained, collection, frame_cache, tiny, tmp_path):
    shutil.copytree(trained, tmp_path / "teacher")
    card = tmp_path / "teacher" / "model.json"
    card.write_text(card.read_text().replace('"cat"', '"cow"'))
    config = load_config(overrides=[*tiny, "localizer.rounds=2", f"localizer.teacher={tmp_path / 'teacher'}"])
    with pytest.raises(ColocamError, match=r"knows the tags .*cow.*, but the videos have .*cat"):
        train(collection.manifest, tmp_path / "run", config, frames=frame_cache)
    assert not (tmp_path / "run").exists()
