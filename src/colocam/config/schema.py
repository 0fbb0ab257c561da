"""What a run can be told: one :class:`Config` of typed sections, each key with its meaning."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(gt=0, le=1)]
Count = Annotated[int, Field(ge=1)]


class Section(BaseModel):
    """A part of the configuration: frozen, and closed to keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Frames(Section):
    """How videos become pictures. Sizes in pixels; frames are made square, aspect ignored, as published."""

    resize: Count = 256
    """Side of the cached frame."""
    crop: Count = 224
    """Side of the random training crop, and of the whole frame at test time."""
    per_clip: Count | None = None
    """At most so many frames of a clip are cached, at a regular stride; null keeps all."""
    per_val_clip: Count = 8
    """Frames of each validation clip that an epoch is judged on, evenly spread."""
    val_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """Share of each tag's videos held out for choosing the epoch, where the data name no split."""

    @model_validator(mode="after")
    def _crop_fits(self) -> "Frames":
        if self.crop > self.resize:
            raise ValueError(f"frames.crop ({self.crop}) must not exceed frames.resize ({self.resize})")
        return self


class Backbone(Section):
    """The encoder: a convolutional network or a plain vision transformer of timm (docs/guide/backbones.md)."""

    name: str = "resnet50"
    pretrained: bool = True
    """Let timm download its weights."""
    weights: Path | None = None
    """A local .safetensors or .pth file in place of timm's download."""
    mean: tuple[NonNegative, NonNegative, NonNegative] | None = None
    """Mean of RGB in 0–1 that the weights expect; null: what timm states for the network's own weights."""
    std: tuple[Positive, Positive, Positive] | None = None
    """Its deviation."""
    output_stride: Literal[8, 16, 32] = 8
    """Pixels of the frame per pixel of the last feature map; strides are removed, no dilation is put in their place.
    A transformer has its patch instead."""
    stride_in_1x1: bool = False
    """Residual bottlenecks stride in their first 1×1 convolution, as weights of ResNet's first version expect (Keras,
    Caffe); those of timm and torchvision stride in the 3×3."""
    args: dict[str, Any] = {}
    """Further arguments of timm's network, e.g. narrower channels."""


class Optimisation(Section):
    """SGD with Nesterov momentum, as published."""

    epochs: Count
    batch: Count
    """Frames a step."""
    lr: Positive
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.9
    weight_decay: NonNegative = 1e-4
    schedule: Literal["step", "cosine"] = "step"
    """step: lr × decay every decay_every epochs; cosine: one warm-up epoch, then to zero over the run."""
    decay: Fraction = 0.9
    decay_every: Count = 15
    ema: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Decay of the running mean of the weights that is evaluated and kept; 0 keeps the last weights themselves."""


ColorMean = Literal["off", "frame", "clip"]
"""Whose colours complete a map (docs/method/colour-mean.md). off: nobody's, as published; frame: the frame's own; clip:
those of all frames of its shot that are looked at together."""

COLOR_MEANS: tuple[ColorMean, ...] = get_args(ColorMean)

UsePresence = Literal["off", "weight", "drop"]
"""What training does with frames that hardly show the tagged object (docs/method/presence.md). weight: they count less;
drop: they are not drawn, though of each clip the likelier half always is."""


class ClassifierStage(Optimisation):
    """Stage 1: frames → tag."""

    epochs: Count = 100
    batch: Count = 32
    lr: Positive = 1e-3
    head_lr_factor: Positive = 10.0
    """Learning rate of the last encoder block and the linear head, relative to the rest."""
    frames_per_clip: Count = 1
    """Random frames of each clip an epoch."""
    window: Fraction = 0.6
    """Central part of the clip that frames are drawn from: ends of a shot are often blurred or empty."""
    label_smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.0
    jitter: NonNegative = 0.0
    """Random brightness, contrast and saturation by up to this factor."""
    presence: UsePresence = "off"
    """Use of presence in the second half of the epochs, as the classifier sees it halfway."""


class Seeds(Section):
    """Pixels of the CAM that become labels (Algorithm 1)."""

    region: Literal["mask", "box"] = "box"
    """Foreground region after Otsu's threshold: the blob itself, or its bounding box."""
    blobs: Literal["largest", "all"] = "largest"
    foreground_top: Fraction = 0.7
    """Among the region's pixels, the share with the highest CAM that may be drawn."""
    background_bottom: Fraction | None = 0.1
    """Among the frame's pixels, the share with the lowest CAM that may be drawn; null: all outside the region."""
    foreground: Count = 1000
    """Pixels drawn a frame and step, in proportion to the CAM."""
    background: Count = 1000
    """Pixels drawn a frame and step, uniformly."""
    dilation: Annotated[int, Field(ge=1)] = 3
    """Side of the square that each drawn pixel grows to; must be odd."""

    @model_validator(mode="after")
    def _odd(self) -> "Seeds":
        if self.dilation % 2 == 0:
            raise ValueError(f"seeds.dilation must be odd, not {self.dilation}")
        return self


class Losses(Section):
    """Weights of the terms beside the partial cross-entropy (eq. 5), and their kernels."""

    crf: NonNegative = 2e-9
    """λ of eq. 2, a frame."""
    sigma_rgb: Positive = 15.0
    sigma_xy: Positive = 100.0
    size: NonNegative = 0.01
    """Weight of eq. 3."""
    barrier: Positive = 1.0
    """Initial t of the log-barrier."""
    barrier_growth: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 1.01
    """Factor of t per epoch."""
    barrier_max: Positive = 10.0
    coloc: NonNegative = 1.0
    """λ_c of eq. 4; 0 leaves the temporal term out (F-CAM)."""
    weighting: Literal["adaptive", "constant", "cut"] = "adaptive"
    """adaptive: divide eq. 4 by its own magnitude (eq. 5); cut: each map by its own association (normalised cut)."""
    divisor: Literal["affinity", "energy"] = "affinity"
    """What the adaptive weight divides by: affinity ΣSᵀWS (the published figures), energy |R_c| (the paper's text)."""


class LocalizerStage(Optimisation):
    """Stage 2: CAM → seeds → decoder."""

    epochs: Count = 10
    batch: Count = 32
    lr: Positive = 0.01
    decay_every: Count = 5
    frames: Count = 4
    """n: frames of a sequence."""
    sampler: Literal["adjacent", "interval", "gaussian"] = "adjacent"
    window: Fraction = 0.6
    sequences_per_clip: Count = 1
    """Sequences drawn from each clip an epoch."""
    pool: Annotated[int, Field(ge=0)] = 0
    """k of TCAM: seeds from the maximum of the CAMs of a frame and its k predecessors."""
    presence: UsePresence = "off"
    """Use of presence, as the trained classifier sees it; weight: the seeds of a frame count by its presence."""
    leave_out: Annotated[int, Field(ge=0)] = 0
    """m: training clips of each tag that stage 2 never sees, to find out how much a result hangs on single clips."""
    leave_out_draw: Annotated[int, Field(ge=0)] = 0
    """Which draw of these clips; it does not depend on the seed."""
    decoder: tuple[Count, ...] = (256, 128, 64, 32, 16)
    """Channels of the decoder's blocks, deepest first. U-Net: one per feature map of the encoder, or one fewer;
    on a transformer, each block doubles the resolution up to the frame's."""
    seeds: Seeds = Seeds()
    losses: Losses = Losses()
    color_mean: ColorMean = "off"
    """Draw the finished decoder's maps towards the mean over alike colours; training does not know of it."""
    focus: bool = False
    """Draw the finished decoder's maps towards the class's CAM (docs/method/focus.md); not used in training either."""


Cam = Literal["cam", "gradcam", "gradcam++", "smooth-gradcam++", "xgradcam", "layercam"]
"""How the frozen classifier is asked where it sees its class (docs/guide/cams.md)."""

Source = Literal[Cam, "clip-es"]
"""Where seeds come from: a CAM of the classifier, or CLIP-ES."""


class ClipModel(Section):
    """The CLIP that ``cam: clip-es`` asks (docs/guide/clip-es.md)."""

    model: str | None = None
    """A checkpoint in Hugging Face format: a folder, or a name on the hub."""
    names: tuple[str, ...] | None = None
    """What to call the tags, in their sorted order, in words that CLIP knows; null: as they are."""
    background: bool = True
    """Add the list of backgrounds to the softmax."""
    refine: bool = True
    """Refine the maps by CLIP's attention."""


Method = Literal["colocam", "fcam", "tcam"]

_ONE_PIXEL = {"region": "mask", "blobs": "all", "foreground": 1, "background": 1}

METHODS: dict[Method, dict[str, Any]] = {
    "colocam": {},
    "fcam": {"losses": {"coloc": 0.0}, "seeds": _ONE_PIXEL, "color_mean": "off", "focus": False},
    "tcam": {"losses": {"coloc": 0.0}, "seeds": _ONE_PIXEL, "color_mean": "off", "focus": False, "pool": 1},
}
"""What each trained method changes in ``localizer``: three short configurations of one loop.

F-CAM and TCAM draw one pixel of each kind a frame, and their maps are taken as they are, as published; CoLo-CAM without
its colour term is ``localizer.losses.coloc=0``.
"""


class Config(Section):
    """Everything that decides a run's result, beside the data."""

    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    methods: tuple[Method, ...] = ("colocam",)
    """Localizers to train from the same classifier; the first becomes the run's model. None: stage 1 alone."""
    frames: Frames = Frames()
    backbone: Backbone = Backbone()
    classifier: ClassifierStage = ClassifierStage()
    cam: Source = "layercam"
    """Source of the seeds."""
    clip: ClipModel = ClipModel()
    localizer: LocalizerStage = LocalizerStage()

    @model_validator(mode="after")
    def _methods_distinct(self) -> "Config":
        if len(set(self.methods)) != len(self.methods):
            raise ValueError(f"methods must be distinct, not {list(self.methods)}")
        return self

    def stage2(self, method: Method) -> LocalizerStage:
        """The localizer's settings with the few that define ``method``."""
        return LocalizerStage.model_validate(merge(self.localizer.model_dump(), METHODS[method]))


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with ``changes`` laid over it, section by section."""
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged
