"""The configuration of a run: one :class:`Config` of typed sections. The text below each key says what it does.

``METHODS`` holds the trained methods by name: which settings of stage 2 make CoLo-CAM, F-CAM or TCAM. All are trained
by the same loop. Register one, and ``methods: [mine]`` in a configuration trains it:

>>> from colocam.config import METHODS, Method
>>> METHODS["mine"] = Method("Mine, no CRF", {"losses": {"crf": 0.0}})
>>> del METHODS["mine"]

Tests: tests/config/test_config.py, tests/config/test_json_schema.py.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from colocam.config.explain import explain, require_registered
from colocam.config.merging import merge
from colocam.config.number_types import Count, Focus, Fraction, NonNegative, Positive, Side, Width
from colocam.types import MOST_LOOKS, ColorMean, ReadInMap


class Method(NamedTuple):
    """A trained method.

    Attributes:
        title: what reports print.
        settings: the keys of ``localizer`` that the method sets, with their values; all others are the user's.
    """

    title: str
    settings: Mapping[str, Any]


_PUBLISHED = {
    "losses": {"coloc": 0.0},
    "seeds": {"region": "mask", "blobs": "all", "foreground": 1, "background": 1},
    "rounds": 1,
    "teacher": None,
    "prior": None,
    "color_mean": "off",
    "focus": False,
    "chooser": "largest",
    "threshold": None,
}
"""F-CAM and TCAM as published: one seed of each kind per frame, one round, maps without post-processing, the
largest contour."""

METHODS: dict[str, Method] = {
    "colocam": Method("CoLo-CAM", {}),
    "fcam": Method("F-CAM", _PUBLISHED),
    "tcam": Method("TCAM", {**_PUBLISHED, "pool": 1}),
}
"""Name in the configuration → method. CoLo-CAM without its color term is ``localizer.losses.coloc=0``."""

CAMS = ("cam", "gradcam", "gradcam++", "smooth-gradcam++", "xgradcam", "layercam", "clip-es")
CHOOSERS = ("largest", "consensus")
TERMS = ("seeds", "crf", "size", "coloc")
"""What is shipped, so that a configuration is checked without importing it: some of it needs torch."""


class Section(BaseModel):
    """A part of the configuration: immutable, and unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


class Frames(Section):
    """How frames are read from videos. Sizes in pixels; frames are resized to squares, as published."""

    resize: Count = 256
    """Side of the cached frame."""
    crop: Side = 224
    """Side of the random training crop, and of the whole frame at test time."""
    map_size: Count | None = None
    """Side of the heat maps, which must divide crop; null: crop. Losses, colors, boxes and the decoder's output have
    this side; the encoder reads frames of side crop."""
    per_clip: Count | None = None
    """Maximum number of cached frames of a clip, chosen at a regular stride; null: all frames."""
    per_val_clip: Count = 8
    """Frames of each validation clip that an epoch is measured on, evenly spaced."""
    val_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """Share of each tag's videos that is held out for validation, where the data name no split."""

    @model_validator(mode="after")
    def _crop_fits(self) -> "Frames":
        if self.crop > self.resize:
            raise ValueError(f"frames.crop ({self.crop}) must not exceed frames.resize ({self.resize})")
        if self.crop % self.map_side:
            raise ValueError(
                f"frames.map_size ({self.map_size}) must divide frames.crop ({self.crop}): "
                f"choose {self.crop}, {self.crop // 2}, … or null"
            )
        return self

    @property
    def map_side(self) -> int:
        """Side of the heat maps in pixels."""
        return self.map_size or self.crop


class Backbone(Section):
    """The encoder: a convolutional network or a plain vision transformer of timm (docs/guide/backbones.md)."""

    name: Annotated[str, Field(max_length=200)] = "resnet50"
    """Name of the network in timm."""
    pretrained: bool = True
    """Download the weights that timm has for the network."""
    weights: Path | None = None
    """A local .safetensors or .pth file instead of timm's download."""
    mean: tuple[NonNegative, NonNegative, NonNegative] | None = None
    """Mean of RGB in 0–1 that the weights expect; null: what timm states for the network."""
    std: tuple[Positive, Positive, Positive] | None = None
    """Standard deviation of RGB in 0–1; null: what timm states for the network."""
    output_stride: Literal[8, 16, 32] = 8
    """Frame pixels per cell of the last feature map. Strides are removed and not replaced by dilation. A transformer's
    patch size takes its place."""
    stride_in_1x1: bool = False
    """Residual bottlenecks stride in their first 1×1 convolution, as the first version of ResNet (Keras, Caffe);
    false: in the 3×3 convolution, as in timm and torchvision."""
    args: dict[str, Any] = {}
    """Further arguments of timm's network, e.g. narrower channels."""


class Optimization(Section):
    """SGD with Nesterov momentum, as published."""

    epochs: Count
    batch: Count
    """Frames per step."""
    lr: Positive
    """Learning rate at the start."""
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.9
    weight_decay: NonNegative = 1e-4
    schedule: Literal["step", "cosine"] = "step"
    """step: multiply lr by decay every decay_every epochs; cosine: one warm-up epoch, then a cosine down to zero."""
    decay: Fraction = 0.9
    decay_every: Count = 15


class ClassifierStage(Optimization):
    """Stage 1: train the classifier of the tags on single frames."""

    fit: Literal["sgd", "logistic"] = "sgd"
    """sgd: train all layers, as published; logistic: keep the encoder as loaded, and fit the linear head alone to its
    pooled features of norm 1 by logistic regression (docs/method/classifier.md). The latter reads size, penalty, views,
    frames_per_clip and window of this section."""
    size: Count | None = None
    """Side in pixels that the class is read at, which must divide frames.crop; null: frames.crop."""
    penalty: Positive = 1e-4
    """logistic: λ of the penalty λ/2 ‖W‖² on the head's weights, beside the mean cross-entropy."""
    views: Count = 4
    """logistic: images of each frame, the frame itself and random crops with changed colors and blur."""
    epochs: Count = 100
    batch: Count = 32
    """Frames per step."""
    lr: Positive = 1e-3
    """Learning rate at the start."""
    head_lr_factor: Positive = 10.0
    """Learning rate of the last encoder block and the linear head, relative to the rest."""
    imagenet: Path | None = None
    """logistic: .safetensors or .pth file of the encoder's weights with their classifier of ImageNet's 1,000 classes,
    whose names help to tell the tags apart (docs/method/names.md); null: those of the model it starts from, if any."""
    frames_per_clip: Count = 1
    """sgd: random frames of each clip per epoch; logistic: evenly spaced frames of each clip, at most."""
    window: Fraction = 0.6
    """Central part of the clip that frames are sampled from; the ends of a shot are often blurred or empty."""
    label_smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.0
    jitter: NonNegative = 0.0
    """Random brightness, contrast and saturation by up to this factor."""

    @model_validator(mode="after")
    def _keeps_its_encoder(self) -> "ClassifierStage":
        if self.imagenet and self.fit == "sgd":
            raise ValueError("classifier.imagenet needs the encoder as it was loaded: set classifier.fit to logistic")
        return self

    @property
    def passes(self) -> int:
        """Epochs after which stage 1 is finished: a logistic regression is one."""
        return 1 if self.fit == "logistic" else self.epochs


class Seeds(Section):
    """Which pixels of the CAM become labels (Algorithm 1 of the paper)."""

    region: Literal["mask", "box"] = "box"
    """Foreground region after Otsu's threshold: the connected regions themselves, or their bounding box."""
    blobs: Literal["largest", "all"] = "largest"
    """Which connected regions count."""
    foreground_top: Fraction = 0.7
    """Share of the region's pixels, those with the highest CAM, that foreground seeds are sampled from."""
    background_bottom: Fraction | None = 0.1
    """Share of the frame's pixels, of the lowest CAM, for background seeds; null: all pixels outside the region."""
    foreground: Count = 1000
    """Foreground pixels per frame and step, sampled in proportion to the CAM."""
    background: Count = 1000
    """Background pixels per frame and step, sampled uniformly."""
    dilation: Annotated[int, Field(ge=1)] = 3
    """Side of the square that each sampled pixel is dilated to; must be odd."""

    @model_validator(mode="after")
    def _odd(self) -> "Seeds":
        if self.dilation % 2 == 0:
            raise ValueError(f"seeds.dilation must be odd, not {self.dilation}")
        return self


class Losses(Section):
    """Weights and parameters of the loss terms (eq. 5); the seeds' partial cross-entropy has weight 1."""

    crf: NonNegative = 2e-9
    """λ, weight of the CRF term (eq. 2)."""
    sigma_rgb: Positive = 15.0
    """σ of the color kernels, in levels of 0–255."""
    sigma_xy: Positive = 100.0
    """σ of the position kernel, in pixels."""
    size: NonNegative = 0.01
    """Weight of the size constraint (eq. 3)."""
    barrier: Positive = 1.0
    """t of the log-barrier in the first epoch."""
    barrier_growth: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 1.01
    """Factor of t per epoch."""
    barrier_max: Positive = 10.0
    """Upper limit of t."""
    coloc: NonNegative = 1.0
    """λ_c, weight of the color co-localization term (eq. 4); 0 leaves it out."""
    weighting: Literal["adaptive", "constant"] = "adaptive"
    """adaptive: divide eq. 4 by its own magnitude (eq. 5); constant: use λ_c as given."""
    divisor: Literal["affinity", "energy"] = "affinity"
    """What the adaptive weight divides by: affinity ΣSᵀWS (the published figures), energy |R_c| (the paper's text)."""
    extra: dict[str, NonNegative] = {}
    """Further terms: name in :data:`colocam.losses.LOSSES` → weight."""

    @field_validator("extra")
    @classmethod
    def _registered(cls, extra: dict[str, float]) -> dict[str, float]:
        for name in extra:
            if name in TERMS:
                raise ValueError(f"losses.extra must not hold '{name}', which has its own weight: leave it out")
            require_registered("losses.extra", name, "colocam.losses.LOSSES", without=TERMS)
        return extra


class LocalizerStage(Optimization):
    """Stage 2: train the decoder on seeds from CAMs."""

    epochs: Count = 10
    batch: Count = 32
    """Frames per step."""
    lr: Positive = 0.01
    """Learning rate at the start."""
    decay_every: Count = 5
    frames: Count = 4
    """n, frames per sequence."""
    sampler: Literal["adjacent", "interval", "gaussian"] = "adjacent"
    """Which n frames of a clip form a sequence."""
    window: Fraction = 0.6
    """Central part of the clip that sequences are sampled from."""
    sequences_per_clip: Count = 1
    """Sequences of each clip per epoch."""
    pool: Annotated[int, Field(ge=0)] = 0
    """k of TCAM: seeds from the maximum of the CAMs of a frame and its k predecessors."""
    leave_out: Annotated[int, Field(ge=0)] = 0
    """m, training clips of each tag that stage 2 does not use, to measure how much a result depends on single clips."""
    leave_out_draw: Annotated[int, Field(ge=0)] = 0
    """Which random choice of these clips; it does not depend on the seed."""
    rounds: Annotated[int, Field(ge=1, le=9)] = 1
    """Times that a decoder is trained: first on seeds with all loss terms, as published; from the second time on, anew
    and on labels from the boxes of the round before (docs/method/rounds.md)."""
    teacher: Path | None = None
    """Run folder of a trained model with the same tags, which replaces the first round (docs/method/teacher.md)."""
    prior: Path | None = None
    """ONNX file of a network of which a second decoder learns what stands out (docs/method/prior.md)."""
    prior_width: Fraction = 0.5
    """Channels of this second decoder, relative to those of the decoder."""
    jitter: NonNegative = 0.0
    """From the second round on: random brightness, contrast and saturation by up to this factor."""
    decoder: tuple[Width, ...] = (256, 128, 64, 32, 16)
    """Channels of the decoder's blocks, deepest first. U-Net: one per feature map of the encoder, or one fewer;
    transformer: each block doubles the resolution up to the frame's."""
    seeds: Seeds = Seeds()
    losses: Losses = Losses()
    color_mean: Literal["auto", "off", "frame", "clip"] = "off"
    """Post-processing of the trained decoder's maps: average over pixels of similar color. auto: clip, or off where
    that shrinks the boxes of held-out videos (docs/method/color-mean.md)."""
    focus: Focus = False
    """Post-processing of the decoder's maps: weight them by this power of the class's CAM (docs/method/focus.md)."""
    chooser: str = "largest"
    """Name in :data:`colocam.boxes.CHOOSERS`: which of a map's contours is the object (docs/method/choosers.md)."""
    looks: Annotated[int, Field(ge=1, le=MOST_LOOKS)] = 1
    """How often the trained model looks at each frame where nobody says it (docs/method/second-look.md)."""
    threshold: Fraction | None = None
    """τ of the boxes relative to each map's maximum, where no boxes of validation videos choose it; null: the mean of
    the validation maps (docs/method/tags-only.md). 0.8 times this where color_mean auto decides for off."""
    crop_head: bool | Literal["auto"] = False
    """Read the class from a crop around the object, by a head of its own; auto: where held-out tags are likelier so."""
    class_in_map: ReadInMap | Literal["auto"] = False
    """Without a crop head, read the class in the map; large: the more, the larger it is; auto: as held-out tags say."""

    @model_validator(mode="after")
    def _is_used(self) -> "LocalizerStage":
        if self.teacher is not None and self.rounds == 1:
            raise ValueError("localizer.teacher replaces the first round, but localizer.rounds is 1: set it to 2")
        return self

    @property
    def most_color_mean(self) -> ColorMean:
        """The color mean of the trained model, unless ``auto`` decides for ``off``."""
        return "clip" if self.color_mean == "auto" else self.color_mean

    def threshold_with(self, color_mean: ColorMean) -> float | None:
        """``threshold`` for the model's maps; 0.8 of it where ``auto`` decided for maps without color mean."""
        lower = self.color_mean == "auto" and color_mean == "off"
        return self.threshold and self.threshold * (0.8 if lower else 1.0)

    @field_validator("chooser")
    @classmethod
    def _chooser_registered(cls, chooser: str) -> str:
        return require_registered("localizer.chooser", chooser, "colocam.boxes.CHOOSERS", CHOOSERS)


class ClipModel(Section):
    """The CLIP model of ``cam: clip-es`` (docs/guide/clip-es.md)."""

    model: str | None = None
    """A checkpoint in Hugging Face format: a folder, or a name on the hub."""
    names: tuple[str, ...] | None = None
    """Names of the tags, in their sorted order, in words that CLIP knows; null: the tags themselves."""
    background: bool = True
    """Add the list of background names to the softmax."""
    refine: bool = True
    """Refine the maps by CLIP's attention."""


class Start(Section):
    """A trained model to start from: its encoder stays as it is, its decoder is where stage 2 begins."""

    model: str
    """Name of a ready model, or a run folder."""
    decoder: Literal["auto", "keep", "own", "train"] = "auto"
    """keep: as it is; own: trained on its own boxes; train: on seeds; auto: as tags say (docs/method/start.md)."""


class Config(Section):
    """Everything that determines the result of a run, besides the data."""

    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    methods: tuple[str, ...] = ("colocam",)
    """Names in :data:`METHODS` to train on one classifier; the first becomes the run's model. Empty: stage 1 alone."""
    start: Start | None = None
    """Model to start from; null: none."""
    frames: Frames = Frames()
    backbone: Backbone = Backbone()
    classifier: ClassifierStage = ClassifierStage()
    cam: str = "layercam"
    """Name in :data:`colocam.cams.CAMS`: the CAM that seeds are sampled from."""
    clip: ClipModel = ClipModel()
    localizer: LocalizerStage = LocalizerStage()

    @field_validator("cam")
    @classmethod
    def _cam_registered(cls, cam: str) -> str:
        return require_registered("cam", cam, "colocam.cams.CAMS", CAMS)

    @model_validator(mode="after")
    def _size_divides(self) -> "Config":
        size, crop = self.classifier.size, self.frames.crop
        if size is not None and crop % size:
            raise ValueError(
                f"classifier.size ({size}) must divide frames.crop ({crop}): choose {crop}, {crop // 2}, … or null"
            )
        return self

    @model_validator(mode="after")
    def _methods_trainable(self) -> "Config":
        if len(set(self.methods)) != len(self.methods):
            raise ValueError(f"methods must be distinct, not {list(self.methods)}")
        for name in self.methods:
            if not re.fullmatch(r"\w[\w.+-]*", name) or name in {"classifier", "frames", "report"}:
                raise ValueError(f"methods: '{name}' cannot be a folder in the run folder: choose another name")
            try:
                self.stage2(require_registered("methods", name, "colocam.config.METHODS", METHODS))
            except ValidationError as error:
                fault = explain(error, LocalizerStage)
                raise ValueError(f"the settings of METHODS['{name}'] do not fit 'localizer': {fault}") from error
        return self

    def stage1(self) -> "Config":
        """This configuration with everything that stage 1 does not read at its default."""
        return self.model_copy(update={"methods": (), "localizer": LocalizerStage(), "clip": ClipModel()})

    def stage2(self, method: str) -> LocalizerStage:
        """The section ``localizer`` with the settings of ``METHODS[method]``."""
        merged = merge(self.localizer.model_dump(mode="json"), METHODS[method].settings)
        return LocalizerStage.model_validate_json(json.dumps(merged))  # JSON has lists for tuples, as YAML has
