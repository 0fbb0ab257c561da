"""The configuration is strict, its errors are one line with the remedy, and what is written is read back the same."""

from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from colocam.config import (
    METHODS,
    Config,
    Method,
    load_config,
    parse_value,
    parse_yaml,
    preset_names,
    read_config,
    validate,
    write_config,
)
from colocam.errors import ColocamError


def refusal(*overrides, file=None, preset="demo"):
    with pytest.raises(ColocamError) as refused:
        load_config(preset, file, overrides)
    text = str(refused.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize("name", ["demo", "laptop", "paper"])
def test_every_preset_loads_and_survives_a_round_trip(name, tmp_path):
    config = load_config(name)
    write_config(tmp_path / "config.yaml", config)
    assert read_config(tmp_path / "config.yaml") == config
    written = yaml.safe_load((tmp_path / "config.yaml").read_text(encoding="utf-8"))
    assert written == config.model_dump(mode="json")  # also what nobody set
    assert set(preset_names()) == {"demo", "laptop", "lite0", "paper", "resnet50"}


def test_the_papers_numbers_are_in_the_preset_paper():
    config = load_config("paper")
    assert (config.frames.resize, config.frames.crop) == (256, 224)
    assert config.backbone.name == "resnet50"
    assert config.backbone.output_stride == 8
    assert (config.classifier.batch, config.localizer.batch, config.localizer.frames) == (32, 32, 4)
    losses = config.localizer.losses
    assert (losses.crf, losses.sigma_rgb, losses.sigma_xy) == (2e-9, 15.0, 100.0)
    assert (losses.barrier, losses.barrier_growth, losses.barrier_max) == (1.0, 1.01, 10.0)
    assert 3 <= losses.coloc <= 7


def test_file_lies_over_preset_and_override_over_file(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("seed: 3\nlocalizer: {seeds: {foreground: 7}, lr: 2e-3}\n", encoding="utf-8")
    config = load_config("demo", file, ["localizer.lr=0.5", "methods=[fcam, colocam]"])
    preset = load_config("demo")
    assert config.seed == 3
    assert config.localizer.seeds.foreground == 7
    assert config.localizer.seeds.background == preset.localizer.seeds.background
    assert config.localizer.lr == 0.5
    assert config.methods == ("fcam", "colocam")
    assert config.classifier == preset.classifier


def test_arguments_of_a_network_do_not_outlive_its_name(tmp_path):
    arguments = load_config("demo").backbone.args
    assert arguments
    assert load_config("demo", None, ["backbone.name=vgg16"]).backbone.args == {}
    assert load_config("demo", None, ["backbone.name=vgg16"]).backbone.output_stride == 8
    assert load_config("demo", None, ["backbone.name=resnet10t"]).backbone.args == arguments
    assert load_config("demo", None, ["backbone.args={drop_rate: 0.1}"]).backbone.args == {
        **arguments,
        "drop_rate": 0.1,
    }
    for overrides in (["backbone.args={a: 1}", "backbone.name=x"], ["backbone.name=x", "backbone.args.a=1"]):
        assert load_config("demo", None, overrides).backbone.args == {"a": 1}
    (tmp_path / "vit.yaml").write_text("backbone: {name: vit_tiny_patch16_224}\n", encoding="utf-8")
    assert load_config("demo", tmp_path / "vit.yaml").backbone.args == {}


@pytest.mark.parametrize("text", ["1e-3", "1E-3", "0.001", "1.0e-3", "+1e-3"])
def test_numbers_as_people_write_them(text):
    assert load_config("demo", None, [f"classifier.lr={text}"]).classifier.lr == 1e-3


def test_what_looks_like_a_number_inside_a_name_stays_a_name():
    assert load_config("demo", None, ["backbone.name=1e3net"]).backbone.name == "1e3net"


@pytest.mark.parametrize(
    ("override", "suggestion"),
    [
        ("sed=1", "did you mean 'seed'?"),
        ("SEED=1", "did you mean 'seed'?"),
        ("frame.crop=3", "did you mean 'frames'?"),
        ("frames.corp=3", "did you mean 'frames.crop'?"),
        ("localizer.seeds.forground=3", "did you mean 'localizer.seeds.foreground'?"),
        ("localizer.losses.sigma_rbg=3", "did you mean 'localizer.losses.sigma_rgb'?"),
        ("localizer.losses.zzz=3", "valid are localizer.losses.crf, localizer.losses.sigma_rgb"),
        (".seed=1", "unknown key ''"),
    ],
)
def test_unknown_keys_are_refused_with_the_nearest_name(override, suggestion):
    text = refusal(override)
    assert suggestion in text
    assert override.split("=")[0] in text


@pytest.mark.parametrize(
    ("override", "key", "value"),
    [
        ("seed=true", "'seed'", "True"),
        ("seed=1.0", "'seed'", "1.0"),
        ("seed=null", "'seed'", "None"),
        ("seed=-1", "'seed'", "-1"),
        ("seed=9223372036854775808", "'seed'", "9223372036854775808"),
        ("frames=3", "'frames'", "3"),
        ("frames.val_fraction=.nan", "'frames.val_fraction'", "nan"),
        ("backbone.args=[1]", "'backbone.args'", "[1]"),
        ("backbone.mean=[0.5, 0.5, -0.5]", "'backbone.mean.2'", "-0.5"),
        ("classifier.lr=0", "'classifier.lr'", "0"),
        ("classifier.lr=.inf", "'classifier.lr'", "inf"),
        ("classifier.momentum=1", "'classifier.momentum'", "1"),
        ("localizer.seeds.foreground_top=1.5", "'localizer.seeds.foreground_top'", "1.5"),
        ("localizer.decoder=[8, 0]", "'localizer.decoder.1'", "0"),
        ("localizer.decoder=[8, 65536]", "'localizer.decoder.1'", "65536"),
    ],
)
def test_wrong_types_and_impossible_values_are_refused(override, key, value):
    text = refusal(override)
    assert text.startswith(f"`overrides` {override}")
    assert key in text
    assert text.endswith(f"not {value}")


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("backbone.output_stride=9", "must be one of 8, 16, 32, not 9"),
        ("localizer.sampler=ajacent", "did you mean 'adjacent'?"),
        ("cam=grad-cam", "did you mean 'gradcam'?"),
        ("cam=occlusion", "valid are cam, gradcam, gradcam++, smooth-gradcam++, xgradcam, layercam, clip-es"),
        (
            "localizer.losses.extra={mine: 1}",
            "'mine', which is not in colocam.losses.LOSSES: register it first",
        ),
        ("localizer.losses.extra={crf: 1}", "losses.extra must not hold 'crf'"),
        ("localizer.losses.weighting=cut", "must be one of adaptive, constant, not 'cut'"),
        ("localizer.color_mean=autos", "must be one of auto, off, frame, clip"),
        ("methods=[colocan]", "did you mean 'colocam'?"),
        ("methods=[fcam, fcam]", "methods must be distinct"),
        ("frames.crop=1000", "frames.crop (1000) must not exceed frames.resize (108)"),
        ("frames.map_size=20", "frames.map_size (20) must divide frames.crop (96)"),
        ("localizer.seeds.dilation=4", "seeds.dilation must be odd, not 4"),
    ],
)
def test_choices_that_do_not_exist_or_do_not_go_together(override, says):
    assert says in refusal(override)


@pytest.mark.parametrize("override", ["seed", "=1", ""])
def test_malformed_overrides_say_how_to_write_one(override):
    assert "write it as key.subkey=value" in refusal(override)


@pytest.mark.parametrize(
    "override", ["seed=[1", "seed={2020-01-01: 1}", "backbone.args=&a {b: *a}", "seed=!!python/name:os.system"]
)
def test_values_that_yaml_cannot_mean_are_refused(override):
    assert refusal(override).startswith(f"`overrides` {override}")


def test_unknown_preset():
    assert "did you mean 'paper'?" in refusal(preset="papers")
    assert "valid are demo, laptop, lite0, paper" in refusal(preset="zzz")


def test_files_that_are_no_configuration(tmp_path):
    assert "no configuration file at" in refusal(file=tmp_path / "none.yaml")
    assert "no configuration file at" in refusal(file=tmp_path)
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe\x00\x80")
    text = refusal(file=tmp_path / "x.yaml")
    assert text.startswith(f"cannot read {tmp_path / 'x.yaml'} as text")
    assert text.endswith("give a YAML file")


def test_another_size_of_the_class_is_refused_with_both_sizes():
    for overrides in (("classifier.size=300",), ("frames.crop=400", "frames.map_size=null"), ("classifier.size=500",)):
        text = refusal(*overrides, preset="resnet50")
        assert "classifier.size (" in text
        assert "must divide frames.crop (" in text
    assert "'classifier.penalty'" in refusal("classifier.penalty=0")
    assert "'classifier.fit'" in refusal("classifier.fit=ridge")


def test_a_teacher_needs_a_second_round_and_is_not_for_published_methods(tmp_path):
    assert "localizer.rounds is 1: set it to 2" in refusal(f"localizer.teacher={tmp_path}")
    config = load_config("lite0", overrides=[f"localizer.teacher={tmp_path}", "methods=[colocam, fcam]"])
    assert config.stage2("colocam").teacher == tmp_path
    assert config.stage2("fcam").teacher is None


def test_no_code_runs_from_yaml(tmp_path):
    witness = tmp_path / "ran"
    (tmp_path / "x.yaml").write_text(f"seed: !!python/object/apply:os.mkdir ['{witness}']", encoding="utf-8")
    assert "is not valid YAML" in refusal(file=tmp_path / "x.yaml")
    assert not witness.exists()


def test_methods_change_only_what_defines_them():
    config = load_config("demo", None, ["localizer.losses.coloc=3.0"])
    own = config.localizer
    assert config.stage2("colocam") == own
    fcam, tcam = config.stage2("fcam"), config.stage2("tcam")
    assert (fcam.losses.coloc, fcam.pool) == (0.0, 0)
    assert (tcam.losses.coloc, tcam.pool) == (0.0, 1)
    assert fcam.losses.model_copy(update={"coloc": 3.0}) == own.losses
    assert (own.color_mean, fcam.color_mean, tcam.color_mean) == ("auto", "off", "off")
    assert fcam.model_copy(update={"losses": own.losses, "seeds": own.seeds, "color_mean": "auto"}) == own
    focused = load_config("resnet50")
    assert [focused.stage2(method).focus for method in ("colocam", "fcam", "tcam")] == [0.7, False, False]
    assert tcam.model_copy(update={"pool": 0}) == fcam
    sparse = {"foreground": 1, "background": 1, "region": "mask", "blobs": "all"}
    assert fcam.seeds == own.seeds.model_copy(update=sparse)


def complaint(read, kind):
    """None where ``read`` gives a ``kind``, else the text of its error."""
    try:
        value = read()
    except ColocamError as error:
        return str(error)
    assert isinstance(value, kind)
    return None


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*Config.model_fields, "x"]), plain, max_size=3))
def test_anything_is_either_a_configuration_or_one_line(values):
    text = complaint(lambda: validate(values, "here"), Config)
    assert text is None or (text.startswith("here") and "\n" not in text)


@given(st.text(max_size=40))
def test_any_text_is_a_mapping_or_one_line(text):
    said = complaint(lambda: parse_yaml(text, "here"), dict)
    assert said is None or (said.startswith("here") and "\n" not in said)


@pytest.mark.parametrize("word", ["off", "on", "yes", "no"])
def test_words_that_old_yaml_takes_for_booleans_stay_words(word):
    assert parse_value(word, "here") == word
    assert parse_value("[true, False]", "here") == [True, False]


def test_off_can_be_said_without_quotes(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("localizer: {color_mean: off}\n", encoding="utf-8")
    assert load_config("demo").localizer.color_mean == "auto"
    for config in (
        load_config("demo", file=file),
        load_config("demo", overrides=["localizer.color_mean=off"]),
    ):
        assert config.localizer.color_mean == "off"
        write_config(tmp_path / "written.yaml", config)
        assert read_config(tmp_path / "written.yaml") == config


def test_the_example_of_the_documentation_changes_every_key_it_names():
    example = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    preset, changed = (load_config("resnet50", file).model_dump() for file in (None, EXAMPLE))

    def leaves(tree, at=()):
        return (
            {k: v for key, part in tree.items() for k, v in leaves(part, (*at, key)).items()}
            if isinstance(tree, dict)
            else {at: tree}
        )

    named = leaves(example)
    before, after = leaves(preset), leaves(changed)
    assert {key: str(after[key]) for key in named} == {key: str(value) for key, value in named.items()}
    assert {key for key in after if after[key] != before[key]} == named.keys() - {("backbone", "name")}


EXAMPLE = Path(__file__).parents[2] / "docs" / "example.yaml"


STORED = Path(__file__).parents[1] / "stored" / "version-0.1.0" / "run" / "config.yaml"


def test_a_configuration_of_version_0_1_0_still_loads():
    assert {"ema", "presence"} <= yaml.safe_load(STORED.read_text(encoding="utf-8"))["localizer"].keys()
    config = read_config(STORED)
    assert config.localizer.losses.extra == {}
    assert config.localizer.focus


@pytest.mark.parametrize("key", ["classifier.ema", "localizer.ema", "classifier.presence", "localizer.presence"])
def test_a_removed_key_is_refused_unless_it_had_no_effect(key, tmp_path):
    values = yaml.safe_load(STORED.read_text(encoding="utf-8"))
    section, name = key.split(".")
    values[section][name] = 0.9 if name == "ema" else "drop"
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(values), encoding="utf-8")
    with pytest.raises(ColocamError) as refused:
        read_config(file)
    assert str(refused.value) == (
        f"{file}: '{key}' was removed after version 0.1.0: delete the key, whose value is {values[section][name]!r}"
    )


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"loses": {"crf": 0}}, "unknown key 'loses': did you mean 'losses'?"),
        ({"losses": {"crf": -1}}, "'losses.crf': input should be greater than or equal to 0, not -1"),
        ({"decoder": "wide"}, "'decoder': input should be a valid array, not 'wide'"),
    ],
)
def test_a_method_with_impossible_settings_is_refused_by_name(monkeypatch, settings, says):
    monkeypatch.setitem(METHODS, "mine", Method("Mine", settings))
    assert f"METHODS['mine'] do not fit 'localizer': {says}" in refusal("methods=[mine]")


def test_what_stage_1_does_not_read():
    config = load_config("paper", overrides=["methods=[fcam]", "localizer.epochs=3", "clip.model=there", "seed=4"])
    kept = config.stage1()
    assert kept == load_config("paper", overrides=["seed=4"]).stage1()
    assert (kept.seed, kept.backbone, kept.classifier) == (4, config.backbone, config.classifier)
    for change in ("classifier.lr=0.5", "frames.crop=8", "cam=cam", "backbone.name=resnet18", "seed=5"):
        assert load_config("paper", overrides=[change]).stage1() != load_config("paper").stage1()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("\n".join(["a: &a [x, x]", *(f"{k}: &{k} [*{j}, *{j}]" for j, k in pairwise("abcdefghij"))]), "aliases"),
        ("base: &b {seed: 1}\nframes: {<<: *b}", "aliases"),
        ("seed: " + "[" * 5000 + "]" * 5000, "nested more than 20 levels deep"),
        ("seed: " + "9" * 5000, "digits"),
        ("classifier: {lr: .nan}", "'classifier.lr'"),
        ("classifier: {window: .inf}", "'classifier.window'"),
        ("classifier: {lr: 1e999}", "'classifier.lr'"),
        ("seed: 2020-13-45", "month"),
        ("# " + "x" * 300_000, "is longer than 262144 characters"),
        ("a: [1", "is not valid YAML"),
        ("- a\n- b\n", "must hold 'key: value' lines, not list"),
        ("just words", "must hold 'key: value' lines, not str"),
        ("frames: {crop: 1, zoom: 2}", "unknown key 'frames.zoom'"),
    ],
)
def test_yaml_of_a_stranger_is_refused_in_one_line(tmp_path, text, told):
    (tmp_path / "x.yaml").write_text(text, encoding="utf-8")
    message = refusal(file=tmp_path / "x.yaml")
    assert message.startswith(str(tmp_path / "x.yaml"))
    assert told in message


@pytest.mark.parametrize("override", [".".join("a" * 5000) + "=1", "seed=" + "9" * 5000, "seed=" + "9" * 4000])
def test_overrides_without_measure(override):
    assert "\n" not in refusal(override)
