"""CLIP-ES as the source of a run's seeds, end to end; and the errors on the way there."""

import json

import numpy as np
import pytest
import torch

from colocam import evaluate
from colocam.cams import min_max, open_cam
from colocam.cams.clip import BACKGROUND, ClipES
from colocam.config import ClipModel, Config
from colocam.errors import ColocamError
from colocam.run import open_run

CPU = torch.device("cpu")


def clip(checkpoint, **changes):
    return Config(clip=ClipModel(model=str(checkpoint), **changes))


def test_a_run_seeded_by_clip(tmp_path, collection, train_into, checkpoint):
    folder = train_into(tmp_path / "run", "cam=clip-es", f"clip.model={checkpoint}", "clip.refine=false")
    run = open_run(folder)
    kept = np.load(folder / "classifier" / "cams.npy")
    clip = run.clips("train")[0]
    clip_es = ClipES.load(checkpoint, run.catalogue.tags, background=BACKGROUND)
    described = json.loads((folder / "classifier" / "cams.json").read_text())
    assert described["source"] == {"method": "clip-es", **clip_es.identity}
    size = run.config.frames.crop
    frame = torch.from_numpy(clip.frames[0].copy()).permute(2, 0, 1)[None].float()
    frame = torch.nn.functional.interpolate(frame, size=(size, size), mode="bilinear", antialias=True)
    expected = min_max(clip_es(frame, torch.tensor([run.catalogue.tags.index(clip.clip.tag)])))
    np.testing.assert_allclose(kept[0], expected[0].numpy(), atol=2e-3)
    measured = evaluate(folder, collection.truth, cams=["layercam", "clip-es"])
    assert list(measured.methods) == ["clip-es", "layercam", "colocam"]  # the source of the seeds first


def test_a_source_says_what_it_is(checkpoint):
    tags = ["cat", "dog"]
    plain = open_cam("clip-es", None, clip(checkpoint, background=False, refine=False), tags, CPU)
    named = open_cam("clip-es", None, clip(checkpoint, names=("tom cat", "hound")), tags, CPU)
    assert plain.identity["background"] == []
    assert plain.identity["refinement"] is None
    assert named.identity["tags"] == ["tom cat", "hound"]
    assert set(named.identity["background"]) <= set(BACKGROUND)
    assert named.identity["refinement"] is not None


def test_without_a_checkpoint_it_says_where_to_name_one():
    with pytest.raises(ColocamError, match=r"cam: clip-es needs a checkpoint: set clip\.model"):
        open_cam("clip-es", None, Config(), ["cat", "dog"], CPU)
