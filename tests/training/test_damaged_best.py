"""A checkpoint of the best decoder whose numbers were changed is named in one line."""

import json

import pytest

from colocam.errors import ColocamError
from colocam.run import open_run
from colocam.training.rounds import best_model


def test_a_threshold_that_is_missing_is_named(trained, tmp_path):
    run = open_run(trained, "cpu")
    method = run.config.methods[0]
    for file in (trained / method).glob("best*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    best_model(run, method, tmp_path)
    state = json.loads((tmp_path / "best.json").read_text())
    del state["threshold"]
    (tmp_path / "best.json").write_text(json.dumps(state))
    with pytest.raises(ColocamError, match=r"best\.json is damaged .*delete"):
        best_model(run, method, tmp_path)
