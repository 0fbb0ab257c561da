"""Running a study: finished cells are never run again, a stopped study goes on, mistakes are one line."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from colocam.errors import ColocamError, InterruptedRunError
from colocam.models import LocalizerNet, make_classifier
from colocam.run import untrained
from lab.study import cells, curves, methods, run_study
from lab.study.cells import Cam, Trained, run_cell, slug
from lab.study.workplace import Lab, open_data


@pytest.fixture
def again(collection, smoked):
    """``again(name, …)`` runs a study in the folder of the smoke tests."""
    out = smoked("temporal").parent  # here, before a test replaces what the study calls

    def run(name, **options):
        data = {"data": str(collection.manifest), "boxes": collection.truth, "out": out}
        return run_study(name, **{**data, "device": "cpu", "smoke": True, **options})

    return run


def refuse(*_, **__):
    raise AssertionError("this was finished")


def test_a_finished_study_runs_nothing(again, smoked, monkeypatch):
    before = (smoked("temporal") / "table.csv").read_bytes()
    monkeypatch.setattr("lab.study.workplace.train", refuse)
    monkeypatch.setattr(cells, "evaluate", refuse)
    monkeypatch.setattr(cells, "measure", refuse)
    assert (again("temporal") / "table.csv").read_bytes() == before


def test_a_stopped_study_writes_what_it_has_and_goes_on(again, tmp_path, monkeypatch):
    measured = []
    plain = cells.evaluate

    def stopping(run, *arguments, **options):
        measured.append(run.name)
        if len(measured) == 2:
            raise KeyboardInterrupt
        return plain(run, *arguments, **options)

    monkeypatch.setattr(cells, "evaluate", stopping)
    with pytest.raises(InterruptedRunError, match="run the same command again to continue the study"):
        again("sampling", out=tmp_path)
    said = json.loads((tmp_path / "sampling" / "study.json").read_text(encoding="utf-8"))
    assert said["cells"] == "1 of 3 (UNFINISHED)"
    assert [bool(row["tags-only"]) for row in said["tables"]["table"]] == [True, False, False]
    again("sampling", out=tmp_path)
    said = json.loads((tmp_path / "sampling" / "study.json").read_text(encoding="utf-8"))
    assert said["cells"] == "3 of 3"
    assert len(measured) == len(set(measured)) + 1 == 4  # the one that was stopped was measured twice
    # seeds that are there are not run again; each has a classifier of its own
    folder = again("sampling", out=tmp_path, seeds=2)
    said = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    assert (said["seeds"], said["cells"], len(measured)) == ("0–1", "6 of 6", 7)
    text = (folder / "README.md").read_text(encoding="utf-8")
    for row in said["tables"]["table"]:
        values = row["tags-only"]
        assert len(values) == 2
        assert f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f}" in text
    seeds = [json.loads(path.read_text())["seed"] for path in tmp_path.glob("work/stage1/*/environment.json")]
    assert sorted(seeds) == [0, 1]


def test_only_the_chosen_values_are_run(lab, again):
    chosen = curves.LAMBDA.cells(replace(lab, smoke=False, values=(5, 0.5)))
    assert [cell.overrides[-1] for cell in chosen] == ["localizer.losses.coloc=0.5", "localizer.losses.coloc=5"]
    with pytest.raises(ColocamError, match=r"values must be among 0\.3, 0\.5, 1, .*, 16, got 7\.5"):
        again("lambda", values=(1.0, 7.5))
    with pytest.raises(ColocamError, match="values cannot be chosen for the study 'cost'"):
        again("cost", values=(1.0,))


def test_what_no_seed_changes_is_run_once_and_says_so(again):
    said = json.loads((again("loss-time", seeds=3) / "study.json").read_text(encoding="utf-8"))
    assert said["seeds"] == "0"
    assert "UNFINISHED" not in said["cells"]


def test_validation_boxes_choose_the_epochs_where_asked(lab, tmp_path):
    asked = Lab(tmp_path, lab.data, smoke=True, device="cpu", val_boxes=True)
    assert asked.identity(asked.config()) != lab.identity(lab.config())
    folder, _ = run_cell(asked, Trained("colocam"), 0)
    assert json.loads((folder / "model.json").read_text(encoding="utf-8"))["threshold_from"] == "validation"


def test_a_damaged_result_is_named(lab, tmp_path):
    other = Lab(tmp_path, lab.data, smoke=True, device="cpu")
    folder = tmp_path / "work" / "cells" / f"{slug('LayerCAM')}-{cells.digest(Cam('layercam').identity(other, 0))}"
    folder.mkdir(parents=True)
    (folder / "result.json").write_text("{", encoding="utf-8")
    with pytest.raises(ColocamError, match="is damaged"):
        run_cell(other, Cam("layercam"), 0)


def test_weights_of_other_backbones_lie_beside(lab, tmp_path):
    file = tmp_path / "resnet50.safetensors"
    overrides = ("backbone.name=resnet50", f"backbone.weights={file}", "backbone.stride_in_1x1=true")
    (tmp_path / "vgg16.safetensors").touch()
    real = Lab(lab.out, lab.data, preset="paper", overrides=overrides, device="cpu")
    chosen = {cell.config(real, 0).backbone.name for cell in methods.NETWORKS.cells(real) if isinstance(cell, Trained)}
    assert chosen == {"resnet50", "vgg16"}
    vgg = Trained("colocam", methods.backbone_overrides(real, "vgg16")).config(real, 0)
    assert vgg.backbone.weights == tmp_path / "vgg16.safetensors"
    assert not vgg.backbone.stride_in_1x1
    assert vgg.localizer.decoder == (256, 128, 64)
    plain = Lab(lab.out, lab.data, preset="paper", device="cpu")
    names = [cell.config(plain, 0).backbone.name for cell in methods.NETWORKS.cells(plain) if isinstance(cell, Trained)]
    assert names == list(methods.BACKBONES)


@pytest.mark.parametrize("preset", ["paper", "resnet50"])
@pytest.mark.parametrize("name", methods.BACKBONES)
def test_every_backbone_can_be_built_from_every_recipe_for_real_videos(lab, preset, name):
    real = Lab(lab.out, lab.data, preset=preset, device="cpu")
    config = real.config(methods.backbone_overrides(real, name))
    with torch.device("meta"):  # no memory and no random numbers
        LocalizerNet(make_classifier(config, untrained(config), 2), config.localizer.decoder)
    assert name.startswith(("resnet", "vit")) or config.classifier.fit == "sgd"


def test_data_are_found_or_the_remedy_named(collection, tmp_path):
    folder = open_data(str(collection.manifest.parent), None, tmp_path, smoke=True)
    assert (folder.manifest, folder.truth) == (collection.manifest, collection.truth)
    assert folder.digest == open_data(str(collection.manifest), collection.truth, tmp_path, smoke=False).digest
    with pytest.raises(ColocamError, match="give a table of boxes"):
        open_data(str(collection.manifest), None, tmp_path, smoke=True)
    (tmp_path / "manifest.csv").touch()
    with pytest.raises(ColocamError, match=r"there is no .*truth.csv: give a folder that 'colocam index' wrote"):
        open_data(str(tmp_path), None, tmp_path, smoke=True)
    with pytest.raises(ColocamError, match="the demo world has its own"):
        open_data("demo", collection.truth, tmp_path, smoke=True)


def test_the_command_lists_runs_and_refuses(colocam, collection, smoked):
    listed = colocam("study", "--list")
    assert listed.code == 0
    assert len(listed.out.splitlines()) == 14
    out = smoked("temporal").parent
    data = ("--data", collection.manifest, "--boxes", collection.truth, "--out", out, "--device", "cpu", "--smoke")
    ran = colocam("study", "temporal", *data)
    assert ran.code == 0
    assert "temporal" in ran.err
    assert "study temporal --data" in (out / "temporal" / "README.md").read_text(encoding="utf-8")
    assert "did you mean 'losses'?" in colocam("study", "lossses", *data).error
    assert "seeds must be 1 or more, got 0" in colocam("study", "losses", "--seeds", 0, *data).error
