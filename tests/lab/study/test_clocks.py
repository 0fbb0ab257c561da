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


def test_a_class_adds_two_operations_per_weight_of_its_logit_and_of_each_cell_of_its_two_maps():
    """CAM and LayerCAM of every class are part of the localizer; a CAM of one class needs no logits."""
    config = load_config(overrides=["frames.crop=32", "frames.resize=36", "localizer.decoder=[8, 8, 8, 8]"])
    network = Network(config, CPU)
    before, alone = network.flops("localizer"), network.flops("layercam")
    head = network.net.classifier.head
    network.net.classifier.head = torch.nn.Linear(head.in_features, head.out_features + 7)
    cells = (32 // 8) ** 2
    assert network.flops("localizer") - before == 2 * 7 * head.in_features * (1 + 2 * cells)
    assert network.flops("layercam") == alone


def test_a_class_read_at_half_the_size_adds_a_quarter_of_the_encoder():
    overrides = ["frames.crop=64", "frames.resize=72", "localizer.decoder=[8, 8, 8, 8]"]
    one, two = (Network(load_config(overrides=[*overrides, *more]), CPU) for more in ((), ("classifier.size=32",)))
    head = one.net.classifier.head
    encoder = one.flops("layercam") - 2 * head.in_features * (64 // 8) ** 2
    assert two.flops("layercam") == one.flops("layercam")
    assert two.flops("localizer") - one.flops("localizer") == pytest.approx(encoder / 4, rel=1e-3)


@pytest.mark.parametrize(("method", "phase"), [("layercam", "classifier"), ("colocam", "colocam")])
def test_the_step_of_each_method_is_that_of_its_stage(lab, tmp_path, monkeypatch, method, phase):
    timed = []

    def step(task, device, steps):
        timed.append((task.phase, device, steps))
        return {"step_ms": 1500.0}

    monkeypatch.setattr("lab.study.costs.whole_step", step)
    assert Cost(method).run(lab, 0, tmp_path)["step_s"] == 1.5
    assert timed == [(phase, CPU, 2)]


def test_a_logistic_regression_has_no_step_to_measure(lab, tmp_path):
    frozen = replace(lab, overrides=(*lab.overrides, "classifier.fit=logistic"))
    with pytest.raises(CannotRunError, match="a logistic regression has no steps"):
        Cost("layercam").run(frozen, 0, tmp_path)


def test_every_method_is_timed_on_the_same_network(monkeypatch):
    config = load_config(overrides=["frames.crop=32", "frames.resize=36", "localizer.decoder=[8, 8, 8, 8]"])
    network = Network(config, CPU)
    encoder, seen = network.net.classifier.encoder, []
    encoder.register_forward_hook(lambda module, *_: seen.append(module))
    monkeypatch.setattr("lab.measuring.median_ms", lambda call, *_: float(call(0) is None))
    for kind in ("layercam", "localizer"):
        network.milliseconds(kind, 1, 1)
    assert [module is encoder for module in seen] == [True, True]
