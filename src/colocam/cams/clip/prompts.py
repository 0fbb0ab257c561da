"""The sentences that CLIP compares frames with: one per class, and one per background name."""

from collections.abc import Sequence

from colocam.errors import ColocamError

TEMPLATE = "a clean origami {}."
"""The sentence that CLIP-ES chose: its scores differ most between classes."""

BACKGROUND = (
    "ground", "land", "grass", "tree", "building", "wall", "sky", "lake", "water", "river", "sea", "railway",
    "railroad", "keyboard", "helmet", "cloud", "house", "mountain", "ocean", "road", "rock", "street", "valley",
    "bridge", "sign",
)  # fmt: skip
"""The background names of CLIP-ES, as quoted in the CoLo-CAM paper."""


def rivals(tags: Sequence[str], background: Sequence[str]) -> tuple[str, ...]:
    """The background names that are not also a tag: a class must not compete with its own name."""
    own = {tag.casefold() for tag in tags}
    return tuple(name for name in background if name.casefold() not in own)


def fill(template: str, names: Sequence[str]) -> list[str]:
    """One sentence per name, which replaces ``{}`` in the template."""
    if template.count("{}") != 1:
        raise ColocamError(f"the CLIP template '{template}' must contain '{{}}' once, in the place of the name")
    return [template.replace("{}", name) for name in names]
