"""What CLIP is asked: one sentence per class, and sentences for what lies around objects."""

from collections.abc import Sequence

from colocam.errors import ColocamError

TEMPLATE = "a clean origami {}."
"""The sentence that CLIP-ES chose: the one whose scores differ most sharply between classes."""

BACKGROUND = (
    "ground", "land", "grass", "tree", "building", "wall", "sky", "lake", "water", "river", "sea", "railway",
    "railroad", "keyboard", "helmet", "cloud", "house", "mountain", "ocean", "road", "rock", "street", "valley",
    "bridge", "sign",
)  # fmt: skip
"""The background list of CLIP-ES, as CoLo-CAM's paper quotes it."""


def rivals(tags: Sequence[str], background: Sequence[str]) -> tuple[str, ...]:
    """The names in the background list that are not themselves a tag: no class may compete with its own name."""
    own = {tag.casefold() for tag in tags}
    return tuple(name for name in background if name.casefold() not in own)


def fill(template: str, names: Sequence[str]) -> list[str]:
    """One sentence per name; ``{}`` in the template stands for it."""
    if template.count("{}") != 1:
        raise ColocamError(f"the CLIP template '{template}' must hold '{{}}' once, where the name goes")
    return [template.replace("{}", name) for name in names]
