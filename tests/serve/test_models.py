"""Several models on one video: layers of each, what changes between them, and which one is in use."""

import cv2
import numpy as np
import pytest
import torch

from colocam.cams import extract
from colocam.models.cam_formulas import min_max
from colocam.models.model_file import load_model
from colocam.video.fence import open_video
from colocam.video.frame_ring import FrameLayout
from tests.helpers.served_library import MovingBox, eventually, gray_video, model_file, serving


@pytest.fixture
def two(make_video, tmp_path):
    """A server with a second model beside the first, whose boxes are 12 pixels further right."""
    other = model_file(tmp_path / "other.onnx")
    video = gray_video(make_video, tmp_path / "video.mp4", [90] * 20, width=80)
    load = {"model.onnx": MovingBox, "other.onnx": lambda: MovingBox(17.0)}
    folder = tmp_path / "page"
    with serving(folder, [video], load=lambda path: load[path.name](), beside=[other]) as server:
        server.other = server.library.beside[0].key
        eventually(lambda: server.client.get("/api/models").json()["models"][1]["seen"] >= 1)
        yield server


def detail(server, **query):
    return server.client.get(f"/api/videos/{server.video}", params=query).json()


def test_both_models_are_listed_and_each_has_its_boxes(two):
    listed = two.client.get("/api/models").json()
    assert [one["title"] for one in listed["models"]] == ["model.onnx", "other.onnx"]
    assert listed["active"] == listed["first"] == listed["models"][0]["key"]
    assert detail(two)["results"]["box"][3] == [8, 6, 28, 30]
    assert detail(two, model=two.other)["results"]["box"][3] == [20, 6, 40, 30]
    missing = two.client.get(f"/api/videos/{two.video}?model={16 * '0'}")
    assert (missing.status_code, "no model with this key" in missing.json()["error"]) == (404, True)


def test_outlines_are_those_of_the_masks(two):
    path = f"/api/videos/{two.video}/outlines?start=3&count=2"
    shapes = two.client.get(path).json()["outlines"]
    assert len(shapes) == 2
    corners = np.array(shapes[0][0]).reshape(-1, 2)
    assert (corners.min(0).tolist(), corners.max(0).tolist()) == ([8, 6], [27, 29])
    assert two.client.get(f"{path}&model={two.other}").json()["outlines"][0] != shapes[0]


def test_what_another_model_changes(two):
    found = two.client.get("/api/changes", params={"after": two.other}).json()
    assert (found["videos"], found["compared"]) == (1, 1)
    first = found["moved"][0]
    assert first["overlap"] == pytest.approx(8 / 32, abs=1e-4)
    assert first["after"][0] - first["before"][0] == 12
    frames = [one["frame"] for one in found["moved"]]
    assert np.diff(sorted(frames)).min() >= 12
    same = two.client.get("/api/changes", params={"after": two.other, "before": two.other}).json()
    assert same["moved"] == []


def test_corrections_count_before_a_new_model_has_seen_the_video(two, tmp_path):
    assert two.edit(kind="none", start=3, stop=4).status_code == 200
    third = model_file(tmp_path / "third.onnx")
    two.client.post("/api/models", json={"key": two.library.models.add(third, "third").key})
    assert two.library.video(two.video).results is None
    assert two.client.get("/api/lessons").json()["corrections"] == 1


def test_the_model_in_use_is_remembered(make_video, tmp_path):
    other = model_file(tmp_path / "other.onnx")
    with serving(tmp_path / "page", beside=[other]) as server:
        server.client.post("/api/models", json={"key": server.library.beside[0].key})
    video = make_video(tmp_path / "video.mp4", 4)
    with serving(tmp_path / "page", [video], beside=[other]) as server:
        assert server.library.active.title == "other.onnx"
        video, first = server.library.videos()[0], server.library.first.key
        assert first not in video.results_by_key  # nobody asked for the first model yet
        eventually(lambda: "results" in server.client.get(f"/api/videos/{video.id}?model={first}").json())
    with serving(tmp_path / "page") as server:  # it is gone
        assert server.library.active.title == "model.onnx"


def test_layercam_of_a_run_and_none_of_an_onnx_file(stored_run, make_video, square_video, tmp_path):
    video = make_video(tmp_path / "video.mp4", square_video("cat", 1, 6)[0])
    with serving(tmp_path / "page", [video], beside=[stored_run]) as server:
        refused = server.client.get(f"/api/videos/{server.video}/cams?start=0")
        assert refused.status_code == 422
        assert "not an ONNX file" in refused.json()["error"]
        path = f"/api/videos/{server.video}/cams?start=2&count=3&model={server.library.beside[0].key}"
        eventually(lambda: server.client.get(path).status_code != 404)
        answer = server.client.get(path)
    maps = np.frombuffer(answer.content, np.uint8).reshape(3, 64, 64)
    model = load_model(stored_run)
    with open_video(video) as reader:
        resized = np.stack([np.array(frame.resized) for frame in reader.frames(layout=FrameLayout(model.card.size))])[
            2:5
        ]
    images = torch.from_numpy(resized).permute(0, 3, 1, 2).float()
    tags = torch.tensor([model.card.tags.index("cat")] * 3)
    expected = min_max(extract("layercam", model.net.classifier, images, tags)).numpy()
    expected = np.stack([cv2.resize(one, (64, 64)) for one in expected])
    np.testing.assert_allclose(maps / 255, expected, atol=1 / 200)


def test_results_are_found_again_and_those_of_an_older_version_computed_again(make_video, tmp_path, monkeypatch, capfd):
    video = gray_video(make_video, tmp_path / "video.mp4", [90] * 5, width=80)
    words = "video.mp4: the stored results are of an older version: it is localized again"
    for version, said in ((1, False), (1, False), (2, True), (2, False)):
        monkeypatch.setattr("colocam.serve.library.RESULTS_VERSION", version)
        with serving(tmp_path / "page", [video]) as server:
            assert len(detail(server)["results"]["box"]) == 5
        assert (words in capfd.readouterr().err) == said
