"""The studies, one small file each."""

from colocam.lab.study.recipe import Study
from colocam.lab.study.recipes import (
    adaptive,
    backbones,
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
from colocam.lab.study.recipes import clip_ways as clip_es

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
