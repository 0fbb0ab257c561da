import pytest

from tests.helpers import youtube_archives as archives


@pytest.fixture(scope="session")
def v1(tmp_path_factory):
    """Read only."""
    return archives.v1(tmp_path_factory.mktemp("v1"))


@pytest.fixture(scope="session")
def v2(tmp_path_factory):
    """Read only."""
    return archives.v2(tmp_path_factory.mktemp("v2"))
