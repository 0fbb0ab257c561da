"""The JSON schema, by a validator that knows nothing of pydantic."""

import json
from pathlib import Path

import jsonschema_rs
import pytest

import colocam
from colocam.config import load_config, parse_yaml, preset_names, write_config
from colocam.config.loading import schema_text


@pytest.fixture(scope="module")
def validator():
    return jsonschema_rs.validator_for(json.loads(schema_text()))


def named_schema(path):
    """The file that an editor reads for a YAML file."""
    mark, name = path.read_text(encoding="utf-8").splitlines()[0].split("=")
    assert mark == "# yaml-language-server: $schema"
    return path.parent / name


@pytest.mark.parametrize("name", preset_names())
def test_presets_are_valid(name, validator):
    path = Path(colocam.__file__).parent / "config" / "presets" / f"{name}.yaml"
    validator.validate(parse_yaml(path.read_text(encoding="utf-8"), name))


def test_a_written_configuration_is_valid_and_names_the_schema_beside_it(tmp_path, validator):
    write_config(tmp_path / "config.yaml", load_config("resnet50"))
    validator.validate(parse_yaml((tmp_path / "config.yaml").read_text(encoding="utf-8"), "config.yaml"))
    assert named_schema(tmp_path / "config.yaml").read_text(encoding="utf-8") == schema_text()


@pytest.mark.parametrize(
    "wrong",
    [
        {"localizr": {}},
        {"localizer": {"losses": {"cfr": 1.0}}},
        {"frames": {"crop": "large"}},
        {"frames": {"crop": 0}},
        {"classifier": {"schedule": "linear"}},
        {"backbone": {"mean": [0.5, 0.5]}},
    ],
)
def test_wrong_keys_and_values_are_refused(wrong, validator):
    assert not validator.is_valid(wrong)


def test_keys_have_descriptions_also_those_of_a_base_class():
    sections = json.loads(schema_text())["$defs"]
    assert sections["Losses"]["properties"]["crf"]["description"].startswith("λ, weight of the CRF term")
    assert sections["LocalizerStage"]["properties"]["lr"]["description"] == "Learning rate at the start."
