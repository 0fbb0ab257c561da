"""Cards of models whose network a test makes itself."""

from colocam.config import Backbone
from colocam.config.card import Card


def cat_or_dog(side):
    """A card of two tags, for frames of ``side`` pixels; its network is never built from it."""
    return Card(
        method="colocam",
        tags=("cat", "dog"),
        size=side,
        threshold=0.4,
        threshold_from="tags-only",
        backbone=Backbone(name="resnet18"),
        decoder=(8,),
        chooser="consensus",
    )
