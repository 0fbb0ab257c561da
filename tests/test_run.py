"""The files of a run folder that were damaged: one line that names the file."""

from dataclasses import replace

import pytest

from colocam.config import load_config, write_config
from colocam.errors import ColocamError
from colocam.evaluation.result import read_evaluation
from colocam.report.page import render
from colocam.run import open_run


@pytest.mark.parametrize(
    "text",
    [
        b'{"tags": ["a", "b"], "boxes": false, "frames": "/x", "clips": [{"name": "a/0", "tag": "a", "spl',
        b"[]",
        b"{}",
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"tags": ["a"], "frames": "/x", "clips": [{"name": 1}]}',
        b'{"tags": ["a"], "frames": 1, "clips": []}',
    ],
)
def test_damaged_data(tmp_path, text):
    write_config(tmp_path / "config.yaml", load_config())
    (tmp_path / "data.json").write_bytes(text)
    with pytest.raises(ColocamError, match=r"data\.json is damaged.*: restore the file, or train again$"):
        open_run(tmp_path, "cpu")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"format": 2, "methods": 1}',
        '{"colocam": {"tags-only": 1}}',
        '{"colocam": {"tags-only": []}, "classification": 3}',
        '{"format": [1]}',
    ],
)
def test_evaluations_of_other_shapes(tmp_path, text):
    (tmp_path / "evaluation.json").write_text(text)
    with pytest.raises(ColocamError, match=r"evaluation\.json"):
        read_evaluation(tmp_path / "evaluation.json")


def test_a_configuration_that_is_not_utf8(tmp_path):
    (tmp_path / "config.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(ColocamError, match=r"no readable config\.yaml"):
        render(tmp_path)


def test_a_configuration_of_another_network_is_refused_before_it_is_built(trained):
    run = open_run(trained, "cpu")
    run.classifier()
    args = {**run.config.backbone.args, "channels": [60_000] * 4}  # 100 GB of weights
    larger = run.config.model_copy(update={"backbone": run.config.backbone.model_copy(update={"args": args})})
    with pytest.raises(ColocamError, match=r"config\.yaml does not fit classifier/best-\d+\.safetensors: 'encoder"):
        replace(run, config=larger).classifier()
