"""Print a table of backbones: python scripts/backbones.py [key=value …] NAME … (keys as in --set, for all names).

Sizes at 224 × 224 and ten classes. The U-Net has the channels 256, 128, 64, 32, 16, as many as the backbone has feature
maps; the head of a transformer has four of them. Nothing is downloaded or allocated.
"""

import argparse

import torch

from colocam.config import load_config
from colocam.models import Classifier, LocalizerNet
from colocam.models.networks import Vit

CHANNELS = (256, 128, 64, 32, 16)


def main(overrides: list[str], names: list[str]) -> None:
    """One row per backbone."""
    print("| backbone | feature maps at 224² | features for the CAM | parameters | learnable |\n|---|---|---|---|---|")
    for name in names:
        config = load_config("paper", None, ["backbone.pretrained=false", f"backbone.name={name}", *overrides])
        with torch.device("meta"):
            classifier = Classifier(config.backbone, 10)
            encoder = classifier.encoder
            depth = 4 if isinstance(encoder.network, Vit) else min(len(encoder.channels), len(CHANNELS))
            net = LocalizerNet(classifier, CHANNELS[:depth])
            features = classifier(torch.empty(1, 3, 224, 224)).features
        sides = ", ".join(str(f.shape[-1]) for f in features)
        _, width, side, _ = features[-1].shape
        total = sum(p.numel() for p in net.parameters()) / 1e6
        learnable = sum(p.numel() for p in net.parameters() if p.requires_grad) / 1e6
        print(f"| `{name}` | {sides} | {side}×{side}×{width} | {total:.2f} M | {learnable:.2f} M |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="+", metavar="KEY=VALUE | NAME")
    given = parser.parse_args().words
    main([word for word in given if "=" in word], [word for word in given if "=" not in word])
