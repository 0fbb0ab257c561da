"""A trained method that nobody at colocam has thought of: many seeds, no CRF, another decoder."""

import pytest

from colocam.config import METHODS, Method, load_config
from colocam.errors import ColocamError
from colocam.inference import Localizer

PLAIN = Method("Seeds only", {"losses": {"crf": 0.0, "size": 0.0, "coloc": 0.0}, "decoder": [8, 8, 8, 8]})


def test_training_evaluation_report_and_export(monkeypatch, fit, use, journal):
    monkeypatch.setitem(METHODS, "plain", PLAIN)
    run = fit("methods=[plain, fcam]")
    steps = journal(run, "plain")
    assert steps
    assert all(line.keys() >= {"seeds", "loss"} and not line.keys() & {"crf", "size", "coloc"} for line in steps)
    done = use(run)
    assert list(done.evaluation)[:3] == ["layercam", "fcam", "plain"]
    assert "Seeds only" in done.report
    assert done.labels
    card = Localizer.load(run).card
    assert (card.method, card.decoder) == ("plain", (8, 8, 8, 8))


@pytest.mark.parametrize("name", ["classifier", "a/b", "..", ""])
def test_a_name_must_serve_as_a_folder(monkeypatch, name):
    monkeypatch.setitem(METHODS, name, PLAIN)
    with pytest.raises(ColocamError, match=r"cannot be a folder in the run folder"):
        load_config(overrides=[f"methods=['{name}']"])


def test_a_name_must_not_be_that_of_a_cam(monkeypatch, fit):
    monkeypatch.setitem(METHODS, "layercam", PLAIN)
    with pytest.raises(ColocamError, match="'layercam' is also the name of a CAM"):
        fit("methods=[layercam]")
