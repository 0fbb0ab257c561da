"""Names of methods as the literature writes them, and their order in reports."""

from collections.abc import Iterable

TITLES = {
    "classifier": "Classifier",
    "cam": "CAM",
    "gradcam": "GradCAM",
    "gradcam++": "GradCAM++",
    "smooth-gradcam++": "Smooth-GradCAM++",
    "xgradcam": "XGradCAM",
    "layercam": "LayerCAM",
    "clip-es": "CLIP-ES",
    "fcam": "F-CAM",
    "tcam": "TCAM",
    "colocam": "CoLo-CAM",
}
"""Method or training phase → title."""
MAIN = "colocam"
"""The method whose gain over the first one is reported."""


def method_title(name: str) -> str:
    """Title of a method or a training phase; the name itself where none is known."""
    return TITLES.get(name, name)


def ordered_methods(names: Iterable[str]) -> list[str]:
    """CoLo-CAM last, the others as they come: an evaluation lists the source of the seeds first, the baseline."""
    return sorted(names, key=lambda name: name == MAIN)
