"""The ML backend by the requests that Label Studio makes; regions are expanded by Label Studio's own tools."""

import copy
import re
from pathlib import Path

import numpy as np
import pytest
import typer
from label_studio_tools.core.label_config import parse_config
from label_studio_tools.postprocessing.video import extract_key_frames
from starlette.testclient import TestClient
from typer.testing import CliRunner

from colocam.inference.localize import Writing, localize_videos
from colocam.integrations.label_studio_backend import Backend, main, make_app, parse_control
from colocam.labels import read_corrections
from colocam.labels.labeled_videos import read_videos

MODEL = Path(__file__).parents[1] / "stored" / "version-0.1.0" / "model.onnx"
CONFIG = """<View>
  <Labels name="kinds" toName="video"><Label value="cat"/><Label value="bus"/><Label value="owl"/></Labels>
  <Video name="video" value="$clip" frameRate="$fps"/>
  <VideoRectangle name="boxes" toName="video"/>
</View>"""
DATA = {"clip": "/data/local-files/?d=all/pets/my%20video.mp4", "fps": 25}


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
def videos(tmp_path_factory, make_video, square_video):
    """Two videos of one name."""
    folder = tmp_path_factory.mktemp("videos")
    for seed, place in enumerate(("pets", "others"), 1):
        make_video(folder / place / "my video.mp4", square_video("cat", seed)[0])
    return folder


@pytest.fixture(scope="module")
def backend(videos, work):
    return Backend(MODEL, videos, work)


@pytest.fixture
def client(backend):
    return TestClient(make_app(backend))


def predicted(client):
    answer = client.post("/predict", json={"tasks": [{"id": 7, "data": DATA}], "label_config": CONFIG, "params": {}})
    assert answer.status_code == 200, answer.text
    (prediction,) = answer.json()["results"]
    return prediction


def table_of(work):
    return read_videos([work / "tables" / "pets" / "my video.csv"], [])[0]


def test_health_and_setup(client):
    assert client.get("/health").json()["status"] == "UP"
    answer = client.post(
        "/setup", json={"project": "1.1", "schema": CONFIG, "hostname": "http://x", "access_token": ""}
    )
    assert answer.json() == {"model_version": "colocam model.onnx"}


def test_predictions_are_what_the_table_says(client, work):
    prediction = predicted(client)
    video = table_of(work)
    control = parse_config(CONFIG)["boxes"]
    assert len(prediction["result"]) == len(video.tracks) > 0
    assert 0 < prediction["score"] <= 1
    assert not (work / "tables" / "others").exists()  # only what was asked for is localized
    for region, track in zip(prediction["result"], video.tracks, strict=True):
        assert [region["to_name"]] == control["to_name"]
        assert (region["from_name"], region["type"]) == ("boxes", control["type"].lower())
        assert region["value"]["labels"] == [track.tag]
        (whole,) = extract_key_frames([region])
        shown = {key["frame"] - 1: key for key in whole["value"]["sequence"]}
        for row in track.rows.tolist():
            key = shown[int(video.rows.frame[row])]
            corners = np.array([key["x"], key["y"], key["x"] + key["width"], key["y"] + key["height"]])
            np.testing.assert_allclose(corners / 100 * (48, 40, 48, 40), video.rows.box[row], atol=1.001)


def test_a_table_of_the_command_line_is_used(videos, tmp_path, client):
    list(localize_videos(MODEL, [videos], tmp_path / "tables", Writing(annotate=False)))
    table = tmp_path / "tables" / "pets" / "my video.csv"
    before = table.stat().st_mtime_ns
    again = Backend(MODEL, videos, tmp_path).predict([{"data": DATA}], CONFIG)
    assert table.stat().st_mtime_ns == before
    assert again == [predicted(client)]


def test_validator_of_label_studio_sdk(client):
    interface = pytest.importorskip("label_studio_sdk.label_interface", reason="needs label-studio-sdk")
    assert not interface.LabelInterface(CONFIG).validate_prediction(predicted(client), return_errors=True)


def save(client, result, *, event="ANNOTATION_UPDATED", **more):
    annotation = {"id": 3, "result": result, **more}
    sent = {"action": event, "task": {"id": 7, "data": DATA}, "annotation": annotation, "project": {"id": 1}}
    answer = client.post("/webhook", json=sent)
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_annotations_become_corrections(client, work):
    region = predicted(client)["result"][0]
    moved = copy.deepcopy(region)
    key = moved["value"]["sequence"][-1]
    key |= {"x": 10.0, "y": 20.0, "width": 30.0, "height": 40.0}
    first = save(client, [moved], event="ANNOTATION_CREATED")
    path = work / "corrections" / first["corrections"]
    found = {one.frame: one for one in read_corrections(path)}
    changed = found[key["frame"] - 1]
    assert (changed.kind, changed.tag, changed.key) == ("box", region["value"]["labels"][0], True)
    np.testing.assert_allclose(changed.boxes[0], (4.8, 8, 19.2, 24))
    assert changed.path == str(table_of(work).source.path)
    assert save(client, [moved]) == first  # the same event again
    second = save(client, [])
    assert second["corrections"] > first["corrections"]
    files = sorted((work / "corrections").glob("*.csv"))
    assert {one.kind for one in read_corrections(*files) if one.frame == changed.frame} == {"none"}


def test_other_events_and_cancelled_annotations_do_nothing(client, work):
    before = list((work / "corrections").glob("*"))
    assert save(client, [], event="START_TRAINING") == {}
    assert save(client, [], was_cancelled=True)["corrections"] is None
    assert list((work / "corrections").glob("*")) == before


@pytest.mark.parametrize(
    ("data", "config", "problem"),
    [
        ({"clip": "/data/local-files/?d=all/dog.mp4", "fps": 25}, CONFIG, "no file in .* matches '/data/local-files"),
        ({"clip": "my video.mp4", "fps": 25}, CONFIG, "no file in"),  # both folders have one
        ({"clip": "../../../etc/passwd", "fps": 25}, CONFIG, "no file in"),
        ({**DATA, "fps": 24}, CONFIG, r'has 25 frames per second, Label Studio plays 24: write frameRate="\$fps"'),
        (DATA, "<View/>", "label_config has no VideoRectangle of a Video"),
        (DATA, "<View>", "label_config: not XML"),
        (DATA, '<!DOCTYPE x [<!ENTITY a "b">]>' + CONFIG, "label_config: declares entities"),
    ],
)
def test_refusals(client, data, config, problem):
    answer = client.post("/predict", json={"tasks": [{"id": 7, "data": data}], "label_config": config})
    assert answer.status_code == 400
    assert re.search(problem, answer.json()["error"]), answer.json()


def test_uploaded_names_and_player_rates():
    control = parse_control(CONFIG.replace('frameRate="$fps"', 'frameRate="30"'))
    assert (control.key, control.rate, control.labels) == ("clip", "30", {"cat", "bus", "owl"})


def test_browsers_and_wrong_passwords_are_refused(backend):
    guarded = TestClient(make_app(backend, "secret"))
    assert guarded.get("/health").status_code == 401
    assert guarded.get("/health", auth=("any", "wrong")).status_code == 401
    assert guarded.get("/health", auth=("any", "secret")).status_code == 200
    assert guarded.get("/health", auth=("any", "secret"), headers={"Origin": "http://evil"}).status_code == 403


def test_command_line_refuses_an_open_address_without_a_password(tmp_path):
    app = typer.Typer()
    app.command()(main)
    words = [str(MODEL), str(tmp_path), str(tmp_path / "work"), "--host", "0.0.0.0"]
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 2
    assert "COLOCAM_PASSWORD" in answer.output
    answer = CliRunner().invoke(app, [str(MODEL), str(tmp_path / "none"), str(tmp_path / "work")])
    assert answer.exit_code == 1
