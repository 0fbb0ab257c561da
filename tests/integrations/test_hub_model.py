"""Models saved and loaded by huggingface_hub's own classes; the run and its numbers are those of version 0.1.0."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import HfApi, ModelCard
from safetensors import safe_open

from colocam import Localizer
from colocam.errors import ColocamError
from colocam.integrations.hub_model import HubModel, model_card
from tests.helpers.one_pass import one_pass

RUN = Path(__file__).parents[1] / "stored" / "version-0.1.0" / "run"
NAMES = ["README.md", "config.json", "model.json", "model.safetensors"]
PROTOCOLS = ("tags-only", "validation", "oracle-global", "oracle-per-class")


@pytest.fixture(scope="module")
def localizer():
    return Localizer.load(RUN, "cpu", smooth="none")


@pytest.fixture(scope="module")
def saved(localizer, tmp_path_factory):
    return localizer.save_pretrained(tmp_path_factory.mktemp("hub") / "pets")


def names_of(folder):
    return sorted(path.name for path in folder.iterdir())


def output(localizer):
    size = localizer.card.size
    frame = np.random.default_rng(0).integers(0, 255, (1, size, size, 3), np.uint8)
    return one_pass(localizer.network, frame)


def assert_same(first, second):
    assert first.card == second.card
    for one, other in zip(output(first), output(second), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_a_saved_folder_holds_safetensors_and_json_and_gives_the_same_maps(localizer, saved):
    assert names_of(saved) == NAMES
    with safe_open(saved / "model.safetensors", framework="np") as file:
        assert list(file.keys())
    assert json.loads((saved / "model.json").read_text())["tags"] == list(localizer.tags)
    loaded = Localizer.from_pretrained(saved, "cpu", smooth="none")
    assert_same(loaded, localizer)
    assert loaded.options.smooth == "none"


def test_a_saved_folder_is_saved_again_with_its_card(saved, tmp_path):
    again = HubModel.from_pretrained(saved)
    again.save_pretrained(tmp_path / "copy")
    assert [(tmp_path / "copy" / name).read_bytes() for name in NAMES] == [(saved / n).read_bytes() for n in NAMES]


def test_from_the_cache_of_the_hub(localizer, saved, tmp_path):
    repository = tmp_path / "models--me--pets"
    commit = "0123456789abcdef0123456789abcdef01234567"
    shutil.copytree(saved, repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    loaded = Localizer.from_pretrained("me/pets", "cpu", cache_dir=tmp_path, local_files_only=True, smooth="none")
    assert_same(loaded, localizer)


def test_push(localizer, tmp_path, monkeypatch):
    asked = {}

    def create_repo(_api, **how):
        asked.update(how)
        return type("Created", (), {"repo_id": how["repo_id"]})

    def upload_folder(_api, *, folder_path, **how):
        shutil.copytree(folder_path, tmp_path / "remote")
        asked.update(how)
        return "https://hub/commit"

    monkeypatch.setattr(HfApi, "create_repo", create_repo)
    monkeypatch.setattr(HfApi, "upload_folder", upload_folder)
    assert localizer.push_to_hub("me/pets", private=True, commit_message="First") == "https://hub/commit"
    assert (asked["repo_id"], asked["private"], asked["commit_message"]) == ("me/pets", True, "First")
    assert names_of(tmp_path / "remote") == NAMES
    assert 'from_pretrained("me/pets")' in (tmp_path / "remote" / "README.md").read_text(encoding="utf-8")
    assert_same(Localizer.from_pretrained(tmp_path / "remote", "cpu"), localizer)


def test_the_model_card_has_all_protocols_data_and_limits(saved):
    card = ModelCard.load(saved / "README.md")
    assert card.data.library_name == "colocam"
    measured = json.loads((RUN / "evaluation.json").read_text())
    method = json.loads((RUN / "model.json").read_text())["method"]
    for protocol in PROTOCOLS:
        assert f"| `{protocol}` | {measured[method][protocol]['average']:.1f} |" in card.text
    clips = json.loads((RUN / "data.json").read_text())["clips"]
    training = {clip["video"] for clip in clips if clip["split"] == "train"}
    assert f"{len(training)} for training" in card.text
    assert "## Limits" in card.text
    assert not any(clip["name"] in card.text or str(clip["path"]) in card.text for clip in clips)


def test_a_card_without_numbers_says_so(tmp_path):
    shutil.copy(RUN / "model.json", tmp_path)
    card = json.loads((RUN / "model.json").read_text())
    card["tags"][0] = "b|us*\n# x"
    (tmp_path / "model.json").write_text(json.dumps(card))
    text = model_card(tmp_path, "me/pets")
    assert "Nothing: the run was not evaluated" in text
    assert r"b\|us\* \# x" in text


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("model.json", "{}", "not a colocam model card"),
        ("config.json", "[1]", "cannot load"),
        ("config.json", "{", "cannot load"),
        ("model.safetensors", "no weights", "missing or damaged"),
    ],
)
def test_a_strangers_folder_is_checked(saved, tmp_path, name, content, problem):
    folder = shutil.copytree(saved, tmp_path / "theirs")
    (folder / name).write_text(content)
    with pytest.raises(ColocamError, match=problem):
        Localizer.from_pretrained(folder, "cpu")


@pytest.mark.parametrize("name", ["me/never-downloaded", "./no such/folder/at all"])
def test_unknown_names(tmp_path, name):
    with pytest.raises(ColocamError, match=r"cannot load .*, as a folder or from the Hugging Face hub: "):
        Localizer.from_pretrained(name, cache_dir=tmp_path, local_files_only=True)


def test_other_files_are_never_replaced(localizer, tmp_path):
    (tmp_path / "config.json").write_text("mine")
    (tmp_path / "thesis.docx").write_text("mine")
    with pytest.raises(ColocamError, match=r"folder must be empty or hold a saved model, got .* with thesis.docx"):
        localizer.save_pretrained(tmp_path)
    assert (tmp_path / "config.json").read_text() == "mine"


def test_a_model_in_memory_cannot_be_saved(localizer, tmp_path):
    with pytest.raises(ColocamError, match="only the model of a run folder can be saved, got one in memory"):
        Localizer(localizer.network, localizer.card).save_pretrained(tmp_path)


def test_without_huggingface_hub(saved, fresh_modules):
    with fresh_modules("huggingface_hub"):
        from colocam import Localizer as Fresh  # noqa: PLC0415
        from colocam.errors import ColocamError as FreshError  # noqa: PLC0415

        with pytest.raises(
            FreshError, match=r"huggingface_hub, which .* is not installed: pip install 'colocam\[hub\]'"
        ):
            Fresh.from_pretrained(saved)
