"""All studies as smoke tests in one folder: they share frames, stage 1 and equal cells."""

from functools import cache

import pytest


@pytest.fixture(scope="session")
def smoked(tmp_path_factory, collection):
    """``smoked(name)`` runs a study on the collection, once a session, and gives its folder of results."""
    from lab.study import run_study  # noqa: PLC0415 - torch only for those who need it

    out = tmp_path_factory.mktemp("studies")

    @cache
    def run(name):
        data = str(collection.manifest)
        return run_study(name, data=data, boxes=collection.truth, out=out, device="cpu", smoke=True)

    return run


@pytest.fixture
def lab(smoked, collection):
    """The place where the smoke tests run."""
    from lab.study.workplace import Lab, StudyData  # noqa: PLC0415

    data = StudyData(collection.manifest.parent.name, collection.manifest, collection.truth)
    return Lab(smoked("temporal").parent, data, smoke=True, device="cpu")
