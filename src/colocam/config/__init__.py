"""Configuration: typed and strict; YAML in, resolved YAML out beside every run."""

from colocam.config.loading import (
    load_config,
    parse_value,
    parse_yaml,
    preset_names,
    read_config,
    validate,
    write_config,
)
from colocam.config.schema import (
    METHODS,
    Backbone,
    Cam,
    ClassifierStage,
    ClipModel,
    Config,
    LocalizerStage,
    Losses,
    Method,
    Optimisation,
    Seeds,
    Source,
    UsePresence,
)

__all__ = [
    "METHODS",
    "Backbone",
    "Cam",
    "ClassifierStage",
    "ClipModel",
    "Config",
    "LocalizerStage",
    "Losses",
    "Method",
    "Optimisation",
    "Seeds",
    "Source",
    "UsePresence",
    "load_config",
    "parse_value",
    "parse_yaml",
    "preset_names",
    "read_config",
    "validate",
    "write_config",
]
