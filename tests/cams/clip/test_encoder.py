"""The CLIP that we cut in two against transformers' own, and everything that can be wrong with a checkpoint."""

import builtins
import json
import os
import re
import shutil
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

from colocam.cams.clip_encoder import load_encoder
from colocam.errors import ColocamError


@pytest.fixture(scope="module")
def original(checkpoint):
    """transformers' own model with its own kind of attention."""
    from transformers import CLIPModel  # noqa: PLC0415 - slow to import

    return CLIPModel.from_pretrained(checkpoint).eval()


@pytest.fixture
def copy(checkpoint, tmp_path):
    """A copy of the checkpoint that may be spoilt."""
    return Path(shutil.copytree(checkpoint, tmp_path / "copy"))


def refusal(source):
    """The one line with which a checkpoint is refused."""
    with pytest.raises(ColocamError) as caught:
        load_encoder(source)
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize("size", [(32, 32), (48, 24)])
@pytest.mark.parametrize("layers", [0, 2])
def test_both_halves_make_the_whole(encoder, original, size, layers):
    frames = torch.randint(256, (3, 3, *size), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    mean = torch.tensor([0.48145466, 0.4578275, 0.40821073]).view(3, 1, 1)
    std = torch.tensor([0.26862954, 0.26130258, 0.27577711]).view(3, 1, 1)
    with torch.no_grad():
        features = original.get_image_features((frames / 255 - mean) / std, interpolate_pos_encoding=True).pooler_output
    view = encoder.view(frames, layers)
    assert view.grid == (size[0] // 8, size[1] // 8)
    torch.testing.assert_close(
        encoder.embed(view.activations, view.class_token), F.normalize(features, dim=1), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(("layers", "averaged"), [(1, 1), (2, 2), (3, 3), (8, 3)])
def test_attention_is_the_mean_of_the_last_maps(checkpoint, encoder, frames, layers, averaged):
    from transformers import CLIPModel  # noqa: PLC0415 - slow to import

    model = CLIPModel.from_pretrained(checkpoint, attn_implementation="eager").eval()
    pixels, _ = encoder._pixels(frames)
    with torch.no_grad():
        maps = model.vision_model(pixels, output_attentions=True).attentions
    assert len(maps) == 3
    expected = sum(one.mean(1)[:, 1:, 1:] for one in maps[-averaged:]) / averaged
    torch.testing.assert_close(encoder.view(frames, layers).attention, expected, rtol=1e-4, atol=1e-6)
    assert encoder.view(frames).attention is None


def test_sides_between_patches_are_stretched_to_the_next(encoder):
    frames = torch.randint(256, (2, 3, 25, 41), generator=torch.Generator().manual_seed(0)).float()
    view = encoder.view(frames)
    assert view.grid == (4, 6)
    stretched = encoder.view(F.interpolate(frames, size=(32, 48), mode="bilinear", align_corners=False))
    torch.testing.assert_close(view.activations, stretched.activations)


def test_texts_are_transformers_own(checkpoint, encoder, original):
    from transformers import CLIPTokenizer  # noqa: PLC0415 - slow to import

    sentences = ["a bus.", "a clean origami cat.", "owl"]
    found = encoder.texts(sentences)
    tokenizer = CLIPTokenizer.from_pretrained(checkpoint)
    for sentence, vector in zip(sentences, found, strict=True):  # one by one: padding must not matter
        with torch.no_grad():
            alone = original.get_text_features(**tokenizer([sentence], return_tensors="pt")).pooler_output[0]
        torch.testing.assert_close(vector, alone / alone.norm(), rtol=1e-4, atol=1e-5)


def test_sentences_that_clip_cannot_read(encoder):
    with pytest.raises(ColocamError, match="longer than the 40 tokens"):
        encoder.texts(["a cat", "a" * 60])
    with pytest.raises(ColocamError, match="cannot spell 'a löwe'"):
        encoder.texts(["a cat", "a löwe"])


def test_mean_and_deviation_are_the_checkpoints(copy, encoder, frames):
    settings = json.loads((copy / "preprocessor_config.json").read_text())
    (copy / "preprocessor_config.json").write_text(json.dumps({**settings, "image_mean": [0.5, 0.4, 0.3]}))
    other = load_encoder(copy)
    assert other.mean == (0.5, 0.4, 0.3)
    assert not torch.allclose(other.view(frames).activations, encoder.view(frames).activations)


def test_half_precision_checkpoints_are_opened_in_full(copy):
    state = {name: value.half() for name, value in load_file(copy / "model.safetensors").items()}
    save_file(state, copy / "model.safetensors", metadata={"format": "pt"})
    assert all(weight.dtype == torch.float32 for weight in load_encoder(str(copy)).model.parameters())


def test_plain_bin_files_are_opened(copy, encoder):
    state = load_file(copy / "model.safetensors")
    (copy / "model.safetensors").unlink()
    torch.save(state, copy / "pytorch_model.bin")
    opened = load_encoder(copy).model.state_dict()
    assert all(torch.equal(opened[name], value) for name, value in encoder.model.state_dict().items())


def test_pickled_code_is_not_run(copy, tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    (copy / "model.safetensors").unlink()
    torch.save({"logit_scale": Trap()}, copy / "pytorch_model.bin")
    assert str(copy) in refusal(copy)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("source", ["/no/such/clip", "./nothing", "a/b/c", "~/no such clip", Path("openai/clip")])
def test_no_folder(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert refusal(source).startswith(f"no CLIP checkpoint at {source}: give a name like")


def test_a_file_is_no_folder(checkpoint):
    assert "give a name like" in refusal(checkpoint / "model.safetensors")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "preprocessor_config.json"])
def test_a_missing_file(copy, name):
    (copy / name).unlink()
    text = refusal(copy)
    assert str(copy) in text
    assert name in text


def test_a_missing_tokenizer_does_not_pass_for_one(copy):
    (copy / "tokenizer.json").unlink()
    with pytest.raises(ColocamError, match="cannot spell 'a cat'"):
        load_encoder(copy).texts(["a cat"])


def test_missing_weights_are_not_made_up(copy):
    state = load_file(copy / "model.safetensors")
    del state["visual_projection.weight"], state["text_projection.weight"]
    save_file(state, copy / "model.safetensors", metadata={"format": "pt"})
    assert "lacks the weights 'text_projection.weight' and 1 more" in refusal(copy)


@pytest.mark.parametrize("damage", ["another size", "cut off"])
def test_damaged_weights(copy, damage):
    path = copy / "model.safetensors"
    if damage == "cut off":
        path.write_bytes(path.read_bytes()[:-1000])
    else:
        changed = {"visual_projection.weight": torch.zeros(3, 3)}
        save_file(load_file(path) | changed, path, metadata={"format": "pt"})
    assert str(copy) in refusal(copy)


def test_another_kind_of_network(copy):
    settings = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**settings, "model_type": "siglip"}))
    assert re.search("model_type 'siglip', not 'clip'", refusal(copy))


@pytest.mark.parametrize("name", ["openai/clip-vit-base-patch16", "hf-hub:openai/clip-vit-base-patch16"])
def test_without_network_both_remedies_are_named(monkeypatch, tmp_path, name):
    import huggingface_hub.constants  # noqa: PLC0415 - slow to import

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    text = refusal(name)
    assert "'openai/clip-vit-base-patch16' could not be downloaded" in text
    assert "network" in text
    assert "local folder" in text


def test_without_the_extra(monkeypatch, checkpoint):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.partition(".")[0] == "transformers":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    assert "pip install 'colocam[clip]'" in refusal(checkpoint)
