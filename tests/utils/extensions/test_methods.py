"""Names that a method from outside cannot have; test_commands.py trains one."""

import pytest

from colocam.config import METHODS, Method, load_config
from colocam.errors import ColocamError

PLAIN = Method("Seeds only", {"losses": {"crf": 0.0, "size": 0.0, "coloc": 0.0}, "decoder": [8, 8, 8, 8]})


@pytest.mark.parametrize("name", ["classifier", "a/b", "..", ""])
def test_a_name_must_serve_as_a_folder(monkeypatch, name):
    monkeypatch.setitem(METHODS, name, PLAIN)
    with pytest.raises(ColocamError, match=r"cannot be a folder in the run folder"):
        load_config(overrides=[f"methods=['{name}']"])


def test_a_name_must_not_be_that_of_a_cam(monkeypatch, fit):
    monkeypatch.setitem(METHODS, "layercam", PLAIN)
    with pytest.raises(ColocamError, match="'layercam' is also the name of a CAM"):
        fit("methods=[layercam]")
