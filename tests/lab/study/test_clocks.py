"""What is counted, against the published counts and by hand; never how long anything takes."""

from dataclasses import replace

import pytest
import torch

from colocam.config import load_config
from lab.study.cells import CannotRunError
from lab.study.costs import Cost, Network
from lab.study.recipe import published

CPU = torch.device("cpu")


def test_operations_and_parameters_are_the_published_ones():
    """ResNet50 on a quarter of 224: a convolution's operations are those of 224², divided by sixteen."""
    config = load_config("paper", overrides=["backbone.pretrained=false", "frames.crop=56"])
    network = Network(config, CPU)
    rows = published("cost")["rows"]
    for method, kind, module in (
        ("layercam", "layercam", network.net.classifier),
        ("colocam", "localizer", network.net),
    ):
        operations = 16 * network.flops(kind)
        assert operations / 1e9 == pytest.approx(rows["gflops"][method], rel=0.005)
        assert operations / 2e9 == pytest.approx(rows["gmacs"][method], rel=0.005)
        parameters = sum(parameter.numel() for parameter in module.parameters())
        assert parameters / 1e6 == pytest.approx(rows["parameters_m"][method], abs=0.05)
    learnable = sum(parameter.numel() for parameter in network.net.decoder.parameters())
    assert learnable / 1e6 == pytest.approx(rows["learnable_m"]["colocam"], abs=0.05)


def test_a_logistic_regression_has_no_step_to_measure(lab, tmp_path):
    frozen = replace(lab, overrides=(*lab.overrides, "classifier.fit=logistic"))
    with pytest.raises(CannotRunError, match="a logistic regression has no steps"):
        Cost("layercam").run(frozen, 0, tmp_path)
