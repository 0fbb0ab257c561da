"""MobileSAM: the decoder against transformers' SAM, the tensors' names, batches, and files that are something else."""

import copy
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import save_file
from torch.nn import functional as F

from colocam.errors import ColocamError
from colocam.segment import load_segmenter, sam
from colocam.segment.sam import MobileSam, MobileSamNet, open_mobile_sam, renamed
from colocam.segment.segmenter import MEAN, STD, Prompts
from tests.helpers.one_buffer import OneBuffer

SIDE = 128


def randomize(net, seed=0):
    """Weights that make every part matter: norms near 1, everything else of a common size."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in [*net.named_parameters(), *net.named_buffers()]:
            if value.is_floating_point() and name not in {"mean", "std"}:
                noise = torch.randn(value.shape, generator=generator)
                positive = "running_var" in name or ("norm" in name and name.endswith("weight")) or "bn.weight" in name
                value.copy_(1 + 0.1 * noise.abs() if positive else 0.08 * noise)
    return net.eval()


@pytest.fixture(scope="module")
def net():
    return randomize(MobileSamNet())


def prompts(frames=2, seed=1):
    """A box, another box and a point for each frame."""
    points = np.random.default_rng(seed).uniform(0, SIDE, (frames, 3, 2, 2)).astype(np.float32)
    points[:, :2].sort(axis=2)
    return Prompts(points, np.tile([[2, 3], [2, 3], [1, -1]], (frames, 1, 1)))


def theirs(name):
    """The name in transformers of a tensor of the checkpoint's prompt encoder or mask decoder."""
    for ours, other in (
        (r"pe_layer\.positional_encoding_gaussian_matrix", "shared_embedding.positional_embedding"),
        (r"point_embeddings", "point_embed"),
        (r"output_upscaling\.0", "upscale_conv1"),
        (r"output_upscaling\.1", "upscale_layer_norm"),
        (r"output_upscaling\.3", "upscale_conv2"),
        (r"\bnorm(\d|_final_attn)\.", r"layer_norm\1."),
        (r"layer_norm_final_attn", "layer_norm_final_attn"),
        (r"(mlps\.\d|head)\.layers\.0", r"\1.proj_in"),
        (r"(mlps\.\d|head)\.layers\.1", r"\1.layers.0"),
        (r"(mlps\.\d|head)\.layers\.2", r"\1.proj_out"),
    ):
        name = re.sub(ours, other, name)
    return name


def test_prompts_and_masks_are_those_of_transformers(net):
    from transformers import SamConfig  # noqa: PLC0415 - slow to import
    from transformers.models.sam.modeling_sam import SamMaskDecoder, SamPromptEncoder  # noqa: PLC0415

    config = SamConfig(
        prompt_encoder_config={"image_size": SIDE, "patch_size": 16},
        mask_decoder_config={"layer_norm_eps": 1e-5},
    )
    config.mask_decoder_config._attn_implementation = "eager"
    encoder, decoder = SamPromptEncoder(config).eval(), SamMaskDecoder(config.mask_decoder_config).eval()
    given = {theirs(name): value for name, value in net.prompt_encoder.state_dict().items()}
    missing, unexpected = encoder.load_state_dict(given, strict=False)
    assert all(name.startswith("mask_embed.") for name in missing)
    assert unexpected == []
    decoder.load_state_dict({theirs(name): value for name, value in net.mask_decoder.state_dict().items()})
    features = torch.randn(2, 256, 8, 8, generator=torch.Generator().manual_seed(2))
    asked = prompts()
    points, labels = torch.from_numpy(asked.points), torch.from_numpy(asked.labels)
    with torch.no_grad():
        logits, quality = net.masks(features, points, labels)
        boxes, dense = encoder(None, None, points[:, :2].flatten(2), None)
        peaks, _ = encoder(points[:, 2:, :1], labels[:, 2:, :1], None, None)
        grid = (torch.arange(8) + 0.5) / 8
        places = torch.stack(torch.meshgrid(grid, grid, indexing="xy"), -1)
        positions = encoder.shared_embedding(places).permute(2, 0, 1)[None].expand(2, -1, -1, -1)
        wanted, expected = decoder(features, positions, torch.cat([boxes, peaks], 1), dense, multimask_output=True)
    assert logits.shape == (2, 3, 3, 32, 32)
    torch.testing.assert_close(logits, wanted, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(quality, expected, rtol=1e-4, atol=1e-4)
    assert wanted.std() > 0.1


def test_features_are_those_of_tiny_vit_whose_last_stage_keeps_the_resolution():
    """Folding batch norms, the layout of channels and the passes of one frame change nothing but rounding."""
    images = np.random.default_rng(3).integers(0, 256, (2, SIDE, SIDE, 3), np.uint8)
    plain = randomize(MobileSamNet())
    tiny = timm.create_model("tiny_vit_5m_224", num_classes=0).eval()
    tiny.load_state_dict(plain.encoder.state_dict(), strict=False)
    x = (torch.from_numpy(images).permute(0, 3, 1, 2) - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[
        :, None, None
    ]
    with torch.no_grad():
        x = tiny.patch_embed(x)
        for stage in list(tiny.stages)[:-1]:
            x = stage(x)
        last = tiny.stages[-1]
        merge = last.downsample
        kernel = merge.conv2
        x = merge.act1(merge.conv1(x))
        x = merge.conv3(merge.act2(kernel.bn(F.conv2d(x, kernel.conv.weight, padding=1, groups=x.shape[1]))))
        x = last.blocks(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        for index in (0, 2):
            norm = plain.neck[index + 1]
            x = F.conv2d(x, plain.neck[index].weight, padding=index // 2)
            x = F.layer_norm(x.permute(0, 2, 3, 1), (256,), norm.weight, norm.bias, 1e-6).permute(0, 3, 1, 2)
    found = MobileSam(plain, torch.device("cpu"), side=SIDE).embed(images)
    assert found.shape == (2, 256, SIDE // 16, SIDE // 16)
    torch.testing.assert_close(found, x, rtol=1e-3, atol=1e-3)


def test_a_frame_gives_the_same_bytes_in_any_batch():
    segmenter = MobileSam(randomize(MobileSamNet()), torch.device("cpu"), side=SIDE)
    images = np.random.default_rng(4).integers(0, 256, (3, SIDE, SIDE, 3), np.uint8)
    asked = prompts(3)
    together = segmenter.masks(segmenter.embed(images), asked)
    for at in range(3):
        one = slice(at, at + 1)
        alone = segmenter.masks(segmenter.embed(images[one]), Prompts(asked.points[one], asked.labels[one]))
        assert torch.equal(alone.logits[0], together.logits[at])
        assert torch.equal(alone.quality[0], together.quality[at])


def test_threads_and_passes_that_share_a_recording_get_their_own_masks(monkeypatch):
    """Prompts of two numbers in three threads, of which one has several passes."""
    net, side = randomize(MobileSamNet()), 32
    plain = MobileSam(copy.deepcopy(net), torch.device("cpu"), side=side)
    monkeypatch.setattr(sam, "Recorded", OneBuffer)
    shared = MobileSam(net, torch.device("cpu"), side=side)
    asked = []
    for seed, frames in enumerate((3, 1, 1)):
        images = np.random.default_rng(seed).integers(0, 256, (frames, side, side, 3), np.uint8)
        given = prompts(frames, seed)
        asked.append((images, given if seed < 2 else Prompts(given.points[:, :2], given.labels[:, :2])))

    def ask(segmenter, images, given):
        return segmenter.masks(segmenter.embed(images), given)

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda one: ask(shared, *one), asked))
    for one, masks in zip(asked, found, strict=True):
        for part, expected in zip(masks, ask(plain, *one), strict=True):
            torch.testing.assert_close(part, expected, rtol=1e-4, atol=1e-4)


def checkpoint_name(name):
    """The name in the published checkpoint of a tensor of the network."""
    name = name.replace("encoder.patch_embed.conv1.", "encoder.patch_embed.seq.0.")
    name = name.replace("encoder.patch_embed.conv2.", "encoder.patch_embed.seq.2.")
    if name.startswith("encoder."):
        name = re.sub(r"\.conv\.weight$", ".c.weight", name)
    name = re.sub(r"^encoder\.stages\.(\d)\.downsample", lambda m: f"encoder.layers.{int(m[1]) - 1}.downsample", name)
    name = name.replace("encoder.stages.", "encoder.layers.")
    return re.sub(r"^(encoder|neck)\.", lambda m: "image_encoder." + ("neck." if m[1] == "neck" else ""), name)


def save_as_published(net, path, **more):
    tensors = {checkpoint_name(name): value.clone() for name, value in net.state_dict().items()}
    save_file({**tensors, **more}, path)
    return path


def test_names_of_the_published_checkpoint_reach_every_tensor(net, tmp_path):
    unused = {"image_encoder.head.weight": torch.zeros(2), "prompt_encoder.mask_downscaling.0.bias": torch.zeros(4)}
    path = save_as_published(net, tmp_path / "mobile_sam.safetensors", **unused)
    assert (
        checkpoint_name("encoder.stages.1.downsample.conv2.conv.weight")
        == "image_encoder.layers.0.downsample.conv2.c.weight"
    )
    assert all(renamed(checkpoint_name(name)) == name for name in net.state_dict())
    opened = open_mobile_sam(path, torch.device("cpu"))
    assert (opened.name, opened.side) == ("MobileSAM", 1024)
    for name, value in net.mask_decoder.state_dict().items():
        assert torch.equal(opened.net.mask_decoder.state_dict()[name], value)


def test_files_that_are_no_segmenter(net, tmp_path):
    cases = {
        tmp_path / "missing.safetensors": "no segmenter at .*missing.safetensors: give MobileSAM's weights",
        save_as_published(
            net, tmp_path / "more.safetensors", other=torch.zeros(1)
        ): "does not hold the weights of MobileSAM",
        tmp_path / "broken.safetensors": "cannot read the segmenter .*broken.safetensors",
        tmp_path / "pickled.pt": "pickled.pt is not a segmenter: give MobileSAM's weights as .safetensors",
        tmp_path / "empty": "holds 0 ONNX files, not an encoder and a decoder",
    }
    (tmp_path / "broken.safetensors").write_bytes(b"no tensors")
    (tmp_path / "pickled.pt").write_bytes(b"\x80\x04")
    (tmp_path / "empty").mkdir()
    for path, message in cases.items():
        with pytest.raises(ColocamError, match=message) as caught:
            load_segmenter(path, "cpu")
        assert "\n" not in str(caught.value)
