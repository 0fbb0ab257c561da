"""CLIP-ES: class maps from CLIP and the names of the tags; no classifier is trained for them (extra ``clip``)."""

from colocam.cams.clip.attention_affinity import Refinement
from colocam.cams.clip.clip_es import ClipES
from colocam.cams.clip.prompts import BACKGROUND, TEMPLATE

__all__ = ["BACKGROUND", "TEMPLATE", "ClipES", "Refinement"]
