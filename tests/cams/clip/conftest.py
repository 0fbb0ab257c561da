"""A small CLIP with random weights, saved as real checkpoints are."""

import pytest
import torch

TAGS = ("bus", "cat", "owl")


def tiny_clip(folder, seed=0):
    """A checkpoint in Hugging Face format: 3 blocks of width 32, patches of 8, frames of 32, letters for tokens."""
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPTokenizer  # noqa: PLC0415 - slow to import

    letters = [*"abcdefghijklmnopqrstuvwxyz0123456789.,-"]
    words = [*letters, *(letter + "</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    CLIPTokenizer(vocab={word: number for number, word in enumerate(words)}, merges=[]).save_pretrained(folder)
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4}
    ends = {"bos_token_id": len(words) - 2, "eos_token_id": len(words) - 1, "pad_token_id": len(words) - 1}
    config = CLIPConfig(
        text_config={**size, **ends, "vocab_size": len(words), "max_position_embeddings": 40},
        vision_config={**size, "patch_size": 8, "image_size": 32},
        projection_dim=16,
        logit_scale_init_value=4.6052,
    )
    torch.manual_seed(seed)
    model = CLIPModel(config)
    with torch.no_grad():  # larger than transformers' first values: attention and positions shall matter
        for name, weight in model.named_parameters():
            if weight.dim() > 1 and "patch_embedding" not in name:
                weight.mul_(2)
        model.vision_model.embeddings.position_embedding.weight.normal_(std=0.3)
        model.vision_model.embeddings.patch_embedding.weight.normal_(std=0.1)
    model.save_pretrained(folder)
    CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}).save_pretrained(folder)
    return folder


@pytest.fixture(name="tiny_clip", scope="session")
def tiny_clip_fixture():
    return tiny_clip


@pytest.fixture(scope="session")
def checkpoint(shared):
    """Folder of the small CLIP; read only."""
    return shared("clip", tiny_clip)


@pytest.fixture(scope="session")
def encoder(checkpoint):
    from colocam.cams.clip_encoder import load_encoder  # noqa: PLC0415 - torch only for those who need it

    return load_encoder(checkpoint)


@pytest.fixture(scope="session")
def tags():
    return TAGS


@pytest.fixture
def frames():
    """(5, 3, 32, 32) noise with blocks of color."""
    generator = torch.Generator().manual_seed(1)
    coarse = torch.rand(5, 3, 4, 4, generator=generator).repeat_interleave(8, 2).repeat_interleave(8, 3)
    return (200 * coarse + 55 * torch.rand(5, 3, 32, 32, generator=generator)).round()
