"""Class activation maps (CAMs): where a classifier sees its class.

``CAMS`` names them; ``extract`` computes one for a batch of frames; ``cam``, ``gradcam``, ``gradcam_pp`` and
``layercam`` are the formulas; ``min_max`` and ``full_size`` scale maps to 0–1 and to the size of the frame.
"""

from colocam.cams.registry import (
    CAMS,
    Cam,
    CamInputs,
    CamSource,
    ExternalCam,
    classifier_cams,
    extract,
    find_cam,
    open_cam,
)
from colocam.models.cam_formulas import cam, full_size, gradcam, gradcam_pp, layercam, min_max

__all__ = [
    "CAMS",
    "Cam",
    "CamInputs",
    "CamSource",
    "ExternalCam",
    "cam",
    "classifier_cams",
    "extract",
    "find_cam",
    "full_size",
    "gradcam",
    "gradcam_pp",
    "layercam",
    "min_max",
    "open_cam",
]
