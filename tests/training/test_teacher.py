"""A trained run teaches another network; tests/config/presets trains one with a teacher."""

import pytest

from colocam.errors import ColocamError


def test_a_teacher_of_other_tags_is_refused_before_training(own_run, train_into, tmp_path):
    card = own_run / "model.json"
    card.write_text(card.read_text().replace('"cat"', '"cow"'))
    with pytest.raises(ColocamError, match=r"knows the tags .*cow.*, but the videos have .*cat"):
        train_into(tmp_path / "new", "localizer.rounds=2", f"localizer.teacher={own_run}")
    assert not (tmp_path / "new").exists()
