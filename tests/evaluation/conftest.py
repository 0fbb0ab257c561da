import pytest

from colocam.data.catalogue import read_manifest
from colocam.data.index import Index, write_index
from colocam.data.truth import read_truth


@pytest.fixture
def index(collection, tmp_path):
    """The collection's videos as an index folder."""
    clips, _ = read_manifest(collection.manifest)
    write_index(tmp_path / "index", Index(tuple(clips), read_truth(collection.truth)))
    return tmp_path / "index"
