"""The configuration of a run: typed, strict, read from YAML and stored with it; the options of a model in use."""

from colocam.config.loading import (
    load_config,
    parse_value,
    parse_yaml,
    preset_names,
    read_config,
    validate,
    write_config,
)
from colocam.config.options import Options
from colocam.config.schema import (
    METHODS,
    Backbone,
    ClassifierStage,
    ClipModel,
    Config,
    LocalizerStage,
    Losses,
    Method,
    Optimization,
    Seeds,
    Start,
)

__all__ = [
    "METHODS",
    "Backbone",
    "ClassifierStage",
    "ClipModel",
    "Config",
    "LocalizerStage",
    "Losses",
    "Method",
    "Optimization",
    "Options",
    "Seeds",
    "Start",
    "load_config",
    "parse_value",
    "parse_yaml",
    "preset_names",
    "read_config",
    "validate",
    "write_config",
]
