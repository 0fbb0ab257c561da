"""A trained run teaches another network: its labels take the place of the first round."""

import json
import shutil

import numpy as np
import pytest

from colocam import evaluate, load_config, train
from colocam.errors import ColocamError
from colocam.training.rounds import FOREGROUND, UNKNOWN

TAUGHT = ["localizer.rounds=2", "localizer.jitter=0.2", "localizer.epochs=1"]


@pytest.fixture(scope="module")
def taught(trained, collection, frame_cache, tiny, tmp_path_factory):
    config = load_config(overrides=[*tiny, *TAUGHT, f"localizer.teacher={trained}"])
    return train(collection.manifest, tmp_path_factory.mktemp("taught") / "run", config, frames=frame_cache)


def test_the_teacher_takes_the_place_of_the_first_round(taught, collection):
    phases = {json.loads(line)["phase"] for line in (taught / "metrics.jsonl").read_text().splitlines()}
    assert phases == {"classifier", "colocam"}
    labels = np.load(taught / "colocam" / "teacher" / "labels.npy")
    assert set(np.unique(labels)) <= {0, UNKNOWN, FOREGROUND}
    assert 0 <= evaluate(taught, collection.truth).methods["colocam"]["validation"].average <= 100


def test_a_teacher_of_other_tags_is_refused_before_training(trained, collection, frame_cache, tiny, tmp_path):
    shutil.copytree(trained, tmp_path / "teacher")
    card = tmp_path / "teacher" / "model.json"
    card.write_text(card.read_text().replace('"cat"', '"cow"'))
    config = load_config(overrides=[*tiny, *TAUGHT, f"localizer.teacher={tmp_path / 'teacher'}"])
    with pytest.raises(ColocamError, match=r"knows the tags .*cow.*, but the videos have .*cat"):
        train(collection.manifest, tmp_path / "run", config, frames=frame_cache)
    assert not (tmp_path / "run").exists()
