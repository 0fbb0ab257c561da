"""An onnx_file model on video files: no torch anywhere, and the same boxes, tracks and masks as with it."""

import csv
import json
import shutil
import subprocess
import sys

import numpy as np
import onnx
import pytest

from colocam.errors import ColocamError
from colocam.inference import Localizer
from colocam.inference.localize import localize_file
from colocam.inference.onnx_network import CARD, open_onnx
from colocam.video.fence import decode
from one_pass import one_pass

WITHOUT_TORCH = """
import sys

REFUSED = {"torch", "torchvision", "timm", "segmentation_models_pytorch", "transformers", "onnx", "onnxscript"}


class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in REFUSED:
            raise ModuleNotFoundError(f"{name} was imported", name=name)


sys.meta_path.insert(0, Refuse())
from colocam.cli import main

try:
    main()
finally:
    assert not REFUSED & set(sys.modules)
"""


@pytest.fixture
def video(tmp_path, make_video, square_video):
    """Two shots, of other sizes than the model's."""
    shots = square_video("cat", 77, 20, (80, 60))[0], square_video("owl", 78, 12, (80, 60))[0]
    return make_video(tmp_path / "video.mp4", [*shots[0], *(255 - picture for picture in shots[1])])


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def without_torch(*words):
    """Run the command line in a process that cannot import torch."""
    command = [sys.executable, "-c", WITHOUT_TORCH, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_whole_video_without_torch(onnx_file, trained, video, tmp_path):
    asked = ["--masks", "--color-mean", "clip", "--focus"]
    process = without_torch("localize", onnx_file, video, "-o", tmp_path / "onnx", *asked)
    assert process.returncode == 0, process.stderr
    localize_file(trained, video, tmp_path / "torch", masks=True, color_mean="clip", focus=True, device="cpu")
    ours, theirs = rows(tmp_path / "torch" / "video.csv"), rows(tmp_path / "onnx" / "video.csv")
    assert len(ours) == 32
    assert len({row["track"] for row in ours} - {""}) > 1
    for one, two in zip(ours, theirs, strict=True):
        assert one.keys() == two.keys()
        for name in ("frame", "pts", "class", "track"):
            assert one[name] == two[name]
        for name, most in {"x1": 1, "y1": 1, "x2": 1, "y2": 1, "probability": 1e-3, "presence": 1e-3}.items():
            assert (one[name] == "") == (two[name] == "")
            assert float(one[name] or 0) == pytest.approx(float(two[name] or 0), abs=most)
        assert (one["mask"] == "") == (two["mask"] == "")
    assert len(list(decode(tmp_path / "onnx" / "video.mp4"))) == 32
    described = [json.loads((tmp_path / name / "video.video.json").read_text()) for name in ("torch", "onnx")]
    assert described[0].pop("made") != described[1].pop("made")  # of another model, so the command would do it again
    results = [one.pop("results") for one in described]  # the engines round differently, so the bytes differ
    assert results[0].keys() == results[1].keys() == {"video.mp4", "video.csv"}
    assert described[0] == described[1]


def test_a_run_folder_without_torch(trained, video, tmp_path, new_colocam):
    assert new_colocam("localize", trained, video, "-o", tmp_path / "out", absent=["torch"]).error == (
        f"error: torch, which the run folder {trained} needs, is not installed: pip install 'colocam[train]' "
        "(in a clone: pip install -e '.[train]'), or give an ONNX file of 'colocam export-model'"
    )


def test_frames_that_share_memory_or_lie_apart(onnx_file):
    """A view of a larger array is read as its values, not as its memory."""
    network, card = open_onnx(onnx_file)
    large = np.random.default_rng(1).integers(0, 256, (6, card.size, card.size, 4)).astype(np.uint8)
    apart = large[::2, :, ::-1, :3]
    for one, two in zip(one_pass(network, apart), one_pass(network, np.ascontiguousarray(apart)), strict=True):
        np.testing.assert_array_equal(one, two)


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
            "does not compute|cannot",
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
        ("foreign", "{path} is not a model of colocam (it holds no model card): make it with 'colocam export"),
        ("no json", "{path} is not a colocam model card: make it with 'colocam export-model RUN -o"),
        ("no card", "{path} is not a colocam model card: make it with 'colocam export-model RUN -o"),
        ("format", "{path} has format 99, this colocam reads 2: update colocam"),
        ("tags", "{path} does not compute what its model card says: make it with 'colocam export"),
        ("size", "{path} does not compute what its model card says: make it with 'colocam export"),
        ("outputs", "{path} does not compute what its model card says: make it with 'colocam export"),
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
