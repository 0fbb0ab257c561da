"""An onnx_file model on video files: no torch anywhere, and the same boxes, tracks and masks as with it."""

import json
import shutil
import sys

import onnx
import pytest

from colocam.config.options import Options
from colocam.errors import ColocamError
from colocam.inference import Localizer
from colocam.inference.localize import localize_file
from colocam.inference.network import CARD
from colocam.video.fence import decode


@pytest.fixture
def video(tmp_path, make_video, square_video):
    """Two shots, of other sizes than the model's."""
    shots = square_video("cat", 77, 20, (80, 60))[0], square_video("owl", 78, 12, (80, 60))[0]
    return make_video(tmp_path / "video.mp4", [*shots[0], *(255 - picture for picture in shots[1])])


def test_a_whole_video_without_torch(onnx_file, video, tmp_path, new_colocam):
    words = ["localize", onnx_file, video, "--masks", "--color-mean", "clip", "--focus"]
    absent = ["torch", "torchvision", "timm", "segmentation_models_pytorch", "transformers", "onnx", "onnxscript"]
    assert new_colocam(*words, "-o", tmp_path / "light", absent=absent).code == 0
    whole = localize_file(
        onnx_file, video, tmp_path / "whole", options=Options(masks=True, color_mean="clip", focus=True)
    )
    for path in whole:
        assert (tmp_path / "light" / path.name).read_bytes() == path.read_bytes()
    assert len(list(decode(whole.video))) == 32


def test_a_run_folder_without_torch(trained, video, tmp_path, new_colocam):
    assert new_colocam("localize", trained, video, "-o", tmp_path / "out", absent=["torch"]).error == (
        f"error: torch, which the run folder {trained} needs, is not installed: pip install 'colocam[train]' "
        "(in a clone: pip install -e '.[train]'), or give an ONNX file of 'colocam export-model'"
    )


def test_a_run_folder_may_be_called_so(trained, tmp_path):
    folder = tmp_path / "run.onnx"
    folder.mkdir()
    for name in ("model.json", "model.safetensors"):
        shutil.copy(trained / name, folder)
    assert Localizer.load(folder).tags == ("bus", "cat", "owl")


def with_output(onnx_file, target, name, *nodes):
    """A copy of the file whose output ``name`` is computed by ``nodes`` from the old one, called ``old``."""
    model = onnx.load(onnx_file)
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = ["old" if one == name else one for one in names]
    model.graph.node.extend(nodes)
    onnx.save(model, target)
    return target


@pytest.mark.parametrize(
    ("name", "how", "message"),
    [
        ("maps", {"op_type": "MaxPool", "kernel_shape": [4], "strides": [4]}, "maps must have the shape"),
        ("maps", {"op_type": "GlobalMaxPool"}, "maps must have the shape"),
        ("maps", {"op_type": "Flatten"}, "maps must have the shape"),
        ("maps", {"op_type": "Log"}, "maps have NaN or infinite values|maps must be in 0–1"),
        ("peaks", {"op_type": "Transpose"}, "peaks must have the shape"),
        (
            "logits",
            {"op_type": "Cast", "to": onnx.TensorProto.DOUBLE},
            "does not return|cannot",
        ),
        ("activations", {"op_type": "Flatten"}, "activations must have the shape"),
    ],
)
def test_outputs_that_differ_from_the_card(onnx_file, video, tmp_path, name, how, message):
    """Compiled code that took them would write outside its arrays."""
    node = onnx.helper.make_node(inputs=["old"], outputs=[name], **how)
    hostile = with_output(onnx_file, tmp_path / "hostile.onnx", name, node)
    with pytest.raises(ColocamError, match=message):
        list(Localizer.load(hostile, color_mean="clip", focus=True)(video))


def damaged(onnx_file, target, damage):
    """A copy of the file with something wrong in it."""
    model = onnx.load(onnx_file)
    card = json.loads(next(one.value for one in model.metadata_props if one.key == CARD))
    data = {"truncated": onnx_file.read_bytes()[:20_000], "empty": b"", "text": b"this is no model\n" * 100}
    cards = {
        "no json": "{",
        "no card": '{"format": 2, "tags": ["a"]}',
        "format": json.dumps({**card, "format": 99}),
        "tags": json.dumps({**card, "tags": ["a", "b"]}),
        "size": json.dumps({**card, "size": 48}),
    }
    if damage == "foreign":
        del model.metadata_props[:]
    elif damage == "no operator":
        model.graph.node[0].op_type = "Nonsense"
    elif damage == "outputs":
        del model.graph.output[2]
    elif damage in cards:
        onnx.helper.set_model_props(model, {CARD: cards[damage]})
    target.write_bytes(data[damage] if damage in data else model.SerializeToString())
    return target


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("truncated", "onnxruntime cannot open {path} ("),
        ("empty", "onnxruntime cannot open {path} ("),
        ("text", "onnxruntime cannot open {path} ("),
        ("no operator", "onnxruntime cannot open {path} ("),
        ("foreign", "{path} is not a model of colocam (it contains no model card): make it with 'colocam export"),
        ("no json", "{path} is not a colocam model card: make it with 'colocam export-model RUN -o"),
        ("no card", "{path} is not a colocam model card: make it with 'colocam export-model RUN -o"),
        ("format", "{path} has format 99, this colocam reads 2: update colocam"),
        ("tags", "{path} does not return what its model card promises: make it with 'colocam export"),
        ("size", "{path} does not return what its model card promises: make it with 'colocam export"),
        ("outputs", "{path} does not return what its model card promises: make it with 'colocam export"),
    ],
)
def test_files_that_are_no_models_of_ours(colocam, onnx_file, video, tmp_path, damage, told):
    path = damaged(onnx_file, tmp_path / "bad.onnx", damage)
    outcome = colocam("localize", path, video, "-o", tmp_path / "out")
    assert outcome.error.startswith("error: " + told.format(path=path))
    assert outcome.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_it_runs_on_the_cpu_alone(onnx_file):
    assert Localizer.load(onnx_file, "cpu").tags == ("bus", "cat", "owl")
    with pytest.raises(ColocamError, match=r"^device cuda: .*model\.onnx runs on the CPU only: use cpu"):
        Localizer.load(onnx_file, "cuda")


def test_without_onnxruntime(onnx_file, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ColocamError, match=r"is not installed: pip install onnxruntime$"):
        Localizer.load(onnx_file)
