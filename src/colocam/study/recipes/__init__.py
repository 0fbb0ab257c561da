"""The studies, one small file each."""

from colocam.study.recipe import Study
from colocam.study.recipes import (
    adaptive,
    backbones,
    clip_es,
    compare,
    cost,
    frames,
    lambda_c,
    loss_time,
    losses,
    sampling,
    stability,
    temporal,
    visual,
)

STUDIES: dict[str, Study] = {
    module.STUDY.name: module.STUDY
    for module in (
        compare,
        losses,
        temporal,
        frames,
        lambda_c,
        adaptive,
        loss_time,
        cost,
        sampling,
        backbones,
        stability,
        clip_es,
        visual,
    )
}
"""By name, in the order of the paper."""
