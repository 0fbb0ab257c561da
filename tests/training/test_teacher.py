"""A trained run teaches another network; tests/presets trains one with a teacher."""

import shutil

import pytest

from colocam.errors import ColocamError


def test_a_teacher_of_other_tags_is_refused_before_training(trained, train_into, tmp_path):
    shutil.copytree(trained, tmp_path / "teacher")
    card = tmp_path / "teacher" / "model.json"
    card.write_text(card.read_text().replace('"cat"', '"cow"'))
    with pytest.raises(ColocamError, match=r"knows the tags .*cow.*, but the videos have .*cat"):
        train_into(tmp_path / "run", "localizer.rounds=2", f"localizer.teacher={tmp_path / 'teacher'}")
    assert not (tmp_path / "run").exists()
