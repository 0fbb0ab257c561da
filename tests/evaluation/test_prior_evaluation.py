"""Evaluation with a prior: results of their own, beside those of the model alone."""

import shutil

import numpy as np
import pytest

from colocam.config.options import Options
from colocam.evaluation.dense import evaluate_dense
from colocam.evaluation.result import method_title, read_dense
from colocam.evaluation.run_evaluation import evaluate, maps_of, methods_of_run, open_evaluation_set
from colocam.maps.prior import open_prior
from colocam.report import write_report
from colocam.run import open_run
from tests.helpers.red_prior import weighed_where_it_agrees, write_red_prior


@pytest.fixture(scope="module")
def red(tmp_path_factory):
    return write_red_prior(tmp_path_factory.mktemp("prior") / "red.onnx", "1,3,32,32")


@pytest.fixture(scope="module")
def evaluated(trained, collection, red, tmp_path_factory):
    folder = tmp_path_factory.mktemp("with-prior") / "run"
    shutil.copytree(trained, folder)
    result = evaluate(folder, collection.truth, options=Options("cpu", prior=red))
    return folder, result


def test_maps_of_a_data_set_are_weighed_where_it_agrees(evaluated, collection, red):
    opened = open_run(evaluated[0], "cpu")
    samples = open_evaluation_set(opened, collection.truth).evaluated.samples
    mapper = methods_of_run(opened, [])["colocam"]
    plain, weighed = (maps_of(opened, one, samples) for one in (mapper, mapper._replace(prior=open_prior(red))))
    frames, _ = samples.read(slice(None), 32, opened.device)
    for level, found, image in zip(plain, weighed, frames.round().numpy(), strict=True):
        np.testing.assert_allclose(found, weighed_where_it_agrees(level, image[0] / image.max()), atol=1)


def test_results_of_the_model_alone_stay_as_they_are(evaluated, own_run, collection):
    _, result = evaluated
    alone = evaluate(own_run, collection.truth, options=Options("cpu"))
    assert result.methods["colocam"] == alone.methods["colocam"]
    assert result.methods["colocam + red"].keys() == alone.methods["colocam"].keys()
    assert not any("+" in name for name in alone.methods)
    assert method_title("colocam + red") == "CoLo-CAM + red"


def test_the_report_has_both(evaluated, index, red):
    folder, _ = evaluated
    evaluate_dense(folder, index, split="test", options=Options("cpu", prior=red))
    assert not (folder / "dense.json").exists()
    assert read_dense(folder / "dense-prior.json").prior == "red"
    page = write_report(folder).read_text(encoding="utf-8")
    assert "CoLo-CAM + red" in page
    assert "with the prior red, more than tags alone" in page
