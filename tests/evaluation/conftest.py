import shutil

import pytest

from colocam.data.catalogue import read_manifest
from colocam.data.truth import Index, read_truth, write_index


@pytest.fixture
def index(collection, tmp_path):
    """The collection's videos as an index folder."""
    clips, _ = read_manifest(collection.manifest)
    write_index(tmp_path / "index", Index(tuple(clips), read_truth(collection.truth)))
    return tmp_path / "index"


@pytest.fixture
def run(trained, tmp_path):
    """A copy of the trained run that may be written to."""
    return shutil.copytree(trained, tmp_path / "run")
