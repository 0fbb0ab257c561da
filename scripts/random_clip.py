"""Write a CLIP of the shape of ViT-B/16 with random weights: python scripts/random_clip.py FOLDER.

Its maps mean nothing. It shows that ``clip-es`` runs end to end on a network of the true size where no trained weights
are at hand. Tokens are letters, because the tokenizer's vocabulary comes with the trained weights.
"""

import argparse
import string
from pathlib import Path

import torch

FIRST, LAST = 49406, 49407
"""Tokens around a sentence, the last two of CLIP's vocabulary."""


def write_clip(folder: Path, blocks: int) -> None:
    """Save model, tokenizer and normalisation in Hugging Face format, in half precision."""
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPTokenizer  # noqa: PLC0415 - slow to import

    letters = [*string.ascii_lowercase, *string.digits, *".,-"]
    words = [*letters, *(letter + "</w>" for letter in letters)]
    vocabulary = {word: index for index, word in enumerate(words)} | {"<|startoftext|>": FIRST, "<|endoftext|>": LAST}
    CLIPTokenizer(vocab=vocabulary, merges=[]).save_pretrained(folder)
    CLIPImageProcessor().save_pretrained(folder)
    depth = {"num_hidden_layers": blocks}
    torch.manual_seed(0)
    config = CLIPConfig(
        text_config={**depth, "bos_token_id": FIRST, "eos_token_id": LAST}, vision_config={**depth, "patch_size": 16}
    )
    CLIPModel(config).half().save_pretrained(folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--blocks", type=int, default=12, help="blocks of each of its two networks (12)")
    asked = parser.parse_args()
    write_clip(asked.folder, asked.blocks)
