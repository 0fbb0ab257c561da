"""Cells of CLIP-ES, which need its weights."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from colocam.errors import ColocamError
from colocam.evaluation.metrics import PROTOCOLS, CorLoc
from colocam.evaluation.result import plain
from colocam.evaluation.run_evaluation import measure
from colocam.lab.measuring import timing
from colocam.lab.study.cells import CannotRunError, Result
from colocam.lab.study.workplace import Lab, stage1_config
from colocam.maps.mapper import Mapper, cam_mapper
from colocam.utils.extras import install_extra

Label = Literal["given", "predicted", "average"]


@dataclass(frozen=True, slots=True)
class ClipRow:
    """Evaluate CLIP-ES: ``{"corloc": {protocol: …}}``, with a given class also ``ms``, the time of one frame.

    Attributes:
        label_from: class of the maps: the video's tag, the prediction of our classifier, or each tag in turn with
            CorLoc averaged.
        background: with the list of backgrounds.
        refine: refined by CLIP's attention.
    """

    label_from: Label = "given"
    background: bool = False
    refine: bool = False

    @property
    def seeded(self) -> bool:
        """Whether the classifier, which has a seed, chooses the class."""
        return self.label_from == "predicted"

    @property
    def label(self) -> str:
        """The method and its options."""
        return f"CLIP-ES, {self.label_from}{', background' * self.background}{', refined' * self.refine}"

    def identity(self, lab: Lab, seed: int) -> Result:
        """The path of CLIP, the options, and stage 1, whose classifier may choose the class."""
        clip = lab.config().clip
        return {
            "clip": clip.model and str(clip.model),
            "names": list(clip.names or ()),
            "row": [self.label_from, self.background, self.refine],
            **lab.identity(stage1_config(lab.config((), seed))),
        }

    def run(self, lab: Lab, seed: int, folder: Path) -> Result:  # noqa: ARG002 - the cells' signature
        """Evaluate on the test frames."""
        clip = lab.config().clip
        if clip.model is None:
            raise CannotRunError(
                "CLIP-ES was not run: it needs a checkpoint, --set clip.model=FOLDER (docs/guide/clip-es.md)"
            )
        try:
            from colocam.cams.clip import BACKGROUND, ClipES, Refinement  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise CannotRunError(f"CLIP-ES was not run: {install_extra('clip')}") from error
        evaluation_set = lab.evaluation_set(lab.stage1(lab.config((), seed)))
        tags, sizes = evaluation_set.run.catalogue.tags, evaluation_set.run.config.frames
        size, side = sizes.crop, sizes.map_side
        clip_es = ClipES.load(
            clip.model,
            clip.names or tags,
            background=BACKGROUND if self.background else (),
            refine=Refinement() if self.refine else None,
            device=evaluation_set.run.device,
        )
        if self.label_from == "average":
            constant = [measure(evaluation_set, _constant(clip_es, c, side)).corloc for c in range(len(tags))]
            return {"corloc": _mean_over(constant)}
        classifier = evaluation_set.run.classifier()

        def maps(frames: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
            return clip_es(frames, classes if self.label_from == "given" else classifier.logits(frames).argmax(1))

        result: Result = {"corloc": plain(measure(evaluation_set, cam_mapper(maps, side)).corloc)}
        if self.label_from == "given":
            frames, classes = next(evaluation_set.evaluated.samples.batches(size, evaluation_set.run.device, batch=1))
            repeats = 3 if lab.smoke else 20
            result["ms"] = timing.median_ms(lambda _: clip_es(frames, classes), evaluation_set.run.device, repeats)
        return result


def _constant(clip_es: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], tag: int, size: int) -> Mapper:
    return cam_mapper(lambda frames, classes: clip_es(frames, torch.full_like(classes, tag)), size)


def _mean_over(results: list[dict[str, CorLoc]]) -> Result:
    """Mean of CorLoc over the constant classes, per protocol."""
    if not results:
        raise ColocamError("CLIP-ES needs at least one tag")
    return {
        protocol: {"average": float(np.mean([result[protocol].average for result in results]))}
        for protocol in PROTOCOLS
        if protocol in results[0]
    }
