"""A run as an ONNX file: what it computes and holds, and one line where it cannot be made."""

import json
import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import colocam as package
from colocam.errors import ColocamError
from colocam.integrations import onnx_export as onnx_model
from colocam.integrations.onnx_export import export_onnx
from colocam.models.model_file import load_model

SIDE = 32
OUTPUTS = ["logits", "probabilities", "maps", "peaks", "activations", "threshold"]


@pytest.fixture
def session(onnx_file):
    return onnxruntime.InferenceSession(onnx_file, providers=["CPUExecutionProvider"])


@pytest.fixture
def written_before(onnx_file, monkeypatch):
    """PyTorch's exporter takes seconds: where it is not the point, what it gave before."""
    made = onnx.load(onnx_file)
    monkeypatch.setattr(onnx_model, "to_onnx", lambda _: made)
    return made


def pictures(count: int, square_video) -> np.ndarray:
    """Frames of a video, pure noise, black and white, in turn."""
    kinds = np.random.default_rng(count).integers(0, 256, (6, SIDE, SIDE, 3))
    kinds[:3] = square_video("cat", 5, 3, (SIDE, SIDE))[0]
    kinds[3:5] = np.array([0, 255])[:, None, None, None]
    return np.resize(kinds, (count, SIDE, SIDE, 3)).astype(np.uint8)


@pytest.mark.parametrize("count", [1, 2, 7, 65])
def test_any_number_of_frames_gives_what_pytorch_gives(session, trained, square_video, count):
    """Against the network itself and torch's softmax, on frames as they are: normalization is inside the file."""
    frames = pictures(count, square_video)
    net = load_model(trained).net
    with torch.inference_mode():
        logits, map_logits, peaks, activations = net(torch.from_numpy(frames).permute(0, 3, 1, 2).float())
    wanted = [logits, logits.softmax(1), map_logits.softmax(1)[:, 1], peaks, activations]
    got = session.run(OUTPUTS[:5], {"frames": frames})
    for one, other in zip(got, wanted, strict=True):
        assert one.dtype == np.float32
        assert one.shape == tuple(other.shape)
        np.testing.assert_allclose(one, other.numpy(), rtol=0, atol=1e-4)
    assert got[2].shape == (count, SIDE, SIDE)
    if count > 2:
        assert np.ptp(got[0], axis=0).min() > 1e-3  # frames differ, so do answers


def test_the_threshold_and_the_whole_card_are_in_the_file(session, trained):
    card = json.loads((trained / "model.json").read_text(encoding="utf-8"))
    (threshold,) = session.run(["threshold"], {"frames": np.zeros((1, SIDE, SIDE, 3), np.uint8)})
    assert threshold == pytest.approx(card["threshold"], abs=1e-7)
    assert json.loads(session.get_modelmeta().custom_metadata_map["colocam.card"]) == card


def test_the_file_is_valid_and_old_runtimes_can_read_it(onnx_file):
    model = onnx.load(onnx_file)
    onnx.checker.check_model(model, full_check=True)
    assert [(one.domain, one.version) for one in model.opset_import] == [("", 18)]
    assert model.ir_version <= 10
    assert len(model.functions) == 0
    (frames,) = model.graph.input
    sides = [one.dim_param or one.dim_value for one in frames.type.tensor_type.shape.dim]
    assert (frames.name, sides) == ("frames", ["batch", SIDE, SIDE, 3])
    assert frames.type.tensor_type.elem_type == onnx.TensorProto.UINT8
    assert [one.name for one in model.graph.output] == OUTPUTS


def test_the_file_does_not_tell_where_it_was_made(onnx_file):
    data = onnx_file.read_bytes()
    for trace in (str(Path(package.__file__).parent), "site-packages", ".py", str(Path.home())):
        assert trace.encode() not in data


def test_a_file_that_differs_from_pytorch_is_not_written(written_before, trained, tmp_path):
    out = tmp_path / "model.onnx"
    out.write_bytes(earlier := written_before.SerializeToString())
    (head,) = [one for one in written_before.graph.initializer if one.name.endswith("decoder.head.bias")]
    bias = onnx.numpy_helper.to_array(head)
    head.CopyFrom(onnx.numpy_helper.from_array(bias + np.float32([0, 0.02]), head.name))
    with pytest.raises(ColocamError, match=r"^onnxruntime and PyTorch differ by 0\.00\d+ on 'resnet10t': use the run"):
        export_onnx(trained, out)
    assert out.read_bytes() == earlier
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


def test_the_command(written_before, colocam, trained, tmp_path):
    out = tmp_path / "new" / "pets.onnx"
    outcome = colocam("export-model", trained, "-o", out)
    assert outcome.code == 0, outcome.err
    assert outcome.err == f"wrote {out}; now: colocam localize {out} VIDEO -o OUT\n"
    assert out.read_bytes() == written_before.SerializeToString()


@pytest.mark.parametrize("name", ["model.pb", "model", "folder.onnx"])
def test_a_wrong_ending(colocam, trained, tmp_path, name):
    (tmp_path / "folder.onnx").mkdir()
    told = colocam("export-model", trained, "-o", tmp_path / name).error
    assert told == f"error: --out must be a file that ends in .onnx, got {tmp_path / name}"
    assert [path.name for path in tmp_path.iterdir()] == ["folder.onnx"]


def test_a_folder_without_a_model(colocam, tmp_path):
    told = colocam("export-model", tmp_path, "-o", tmp_path / "model.onnx").error
    assert told == f"error: no trained model in {tmp_path} (model.json is missing): finish 'colocam train' first"


def test_what_pytorch_cannot_write(trained, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise torch.onnx.errors.OnnxExporterError("no such operator\nand a page of advice")

    monkeypatch.setattr(torch.onnx, "export", fail)
    with pytest.raises(ColocamError, match=r"^PyTorch cannot write 'resnet10t' as ONNX: no such operator$"):
        export_onnx(trained, tmp_path / "model.onnx")


def test_weights_that_one_file_cannot_hold(trained, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_model, "MOST_BYTES", 1000)
    with pytest.raises(ColocamError, match="exceed the 2 GiB that an ONNX file can hold: use the run folder"):
        export_onnx(trained, tmp_path / "model.onnx")


@pytest.mark.usefixtures("written_before")
def test_a_decoder_of_8_bits_gives_nearly_the_same_maps(
    colocam, onnx_file, trained, collection, square_video, tmp_path
):
    out = tmp_path / "int8.onnx"
    outcome = colocam("export-model", trained, "-o", out, "--int8", collection.videos)
    assert outcome.code == 0, outcome.err
    frames = np.stack(square_video("cat", 5, 3, (SIDE, SIDE))[0])
    plain, small = (
        onnxruntime.InferenceSession(model).run(["logits", "peaks", "maps"], {"frames": frames})
        for model in (onnx_file, out)
    )
    np.testing.assert_allclose(small[0], plain[0], rtol=0, atol=1e-5)  # the classifier is left as it is
    np.testing.assert_allclose(small[1], plain[1], rtol=0, atol=1e-5)
    difference = np.abs(small[2] - plain[2])
    assert difference.max() > 1e-5
    assert difference.mean() < 0.1 * plain[2].std()
    made = onnx.load(out)
    kernels = {tensor.name: tensor.data_type for tensor in made.graph.initializer if len(tensor.dims) == 4}
    decoder = {kind for name, kind in kernels.items() if ".decoder.unet." in name}
    assert decoder == {onnx.TensorProto.INT8}
    assert {kind for name, kind in kernels.items() if ".encoder." in name} == {onnx.TensorProto.FLOAT}


@pytest.mark.usefixtures("written_before")
def test_a_decoder_of_8_bits_that_differs_is_not_written(colocam, trained, collection, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_model, "INT8_TOLERANCE", 1e-9)
    out = tmp_path / "int8.onnx"
    told = colocam("export-model", trained, "-o", out, "--int8", collection.videos).error
    assert re.fullmatch(r"error: maps computed in 8 bits differ by \S+ on average: export without --int8", told)
    assert not out.exists()


@pytest.mark.usefixtures("written_before")
def test_ranges_need_videos(colocam, trained, tmp_path):
    (tmp_path / "empty").mkdir()
    told = colocam("export-model", trained, "-o", tmp_path / "int8.onnx", "--int8", tmp_path / "empty").error
    assert "contains no video" in told
    told = colocam("export-model", trained, "-o", tmp_path / "int8.onnx", "--int8", tmp_path / "none.mp4").error
    assert "none.mp4" in told


@pytest.mark.usefixtures("written_before")
def test_weights_of_16_bits_take_half_of_the_file_and_give_nearly_the_same(onnx_file, trained, square_video, tmp_path):
    frames = pictures(7, square_video)
    half = export_onnx(trained, tmp_path / "half.onnx", half=True)
    plain, small = (onnxruntime.InferenceSession(path).run(None, {"frames": frames}) for path in (onnx_file, half))
    for one, other in zip(small, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-2 * max(1, np.abs(other).max()))
    kinds = {tensor.data_type for tensor in onnx.load(half).graph.initializer if len(tensor.dims) > 1}
    assert onnx.TensorProto.FLOAT16 in kinds
    assert onnx.TensorProto.FLOAT not in kinds
    kernels = sum(value.nbytes for value in load_model(trained).net.parameters() if value.dim() > 1)
    assert onnx_file.stat().st_size - half.stat().st_size > 0.4 * kernels  # the rest are names of the conversions
