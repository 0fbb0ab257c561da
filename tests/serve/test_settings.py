"""Classes of videos and settings of the library: what they change is localized again, and corrections stay."""

import hashlib
import json
import threading

import pytest

from colocam.inference.localizer import Localizer
from colocam.serve.store import Wanted, with_wanted
from tests.helpers.served_library import MovingBox, eventually, model_file, serving
from tests.helpers.served_page import ServedPage, listening


@pytest.fixture
def three(make_video, tmp_path):
    """Videos cat/one, dog/two and three, ready."""
    videos = []
    for at, name in enumerate(("cat/one", "dog/two", "three")):
        videos.append((make_video(tmp_path / "videos" / f"{name}.mp4", 8 + at), name))
    with serving(tmp_path / "page", videos) as server:
        server.ids = [video.id for video in server.library.videos()]
        server.tables = lambda: len(list((tmp_path / "page" / "videos").glob("*.maps")))
        yield server


def cards(server):
    return server.client.get("/api/videos").json()["videos"]


def boxes(server, video):
    return server.client.get(f"/api/videos/{video}").json()["results"]["box"]


def test_the_class_of_a_video_is_offered_set_and_taken_back(three):
    assert [(card["offered"], card["class"]) for card in cards(three)] == [("cat", ""), ("dog", ""), ("", "")]
    three.video = three.ids[1]
    assert three.edit(kind="none", start=3, stop=4).status_code == 200
    answer = three.client.post("/api/tags", json={"tags": {three.ids[1]: "dog", three.ids[2]: "dog"}})
    assert [card["class"] for card in answer.json()["videos"]] == ["dog", "dog"]
    three.wait()
    assert [(card["class"], card["found"]) for card in cards(three)] == [("", "cat"), ("dog", "dog"), ("dog", "dog")]
    assert cards(three)[1]["checked"] > 0  # what a person said stays
    assert three.tables() == 5
    first = three.client.post("/api/tags", json={"tags": {three.ids[1]: ""}}).json()["videos"][0]
    assert (first["state"], first["found"]) == ("ready", "cat")  # at once: it is stored
    assert three.tables() == 5


def test_settings_change_all_videos_and_back_is_at_once(three):
    video = three.ids[0]
    before, key = boxes(three, video), three.client.get(f"/api/videos/{video}").json()["results_key"]
    usual = {"presence": None, "threshold": None, "instances": False, "refine": True}
    assert three.client.get("/api/videos").json()["settings"] == usual
    assert three.client.post("/api/settings", json={"threshold": 0.4}).json() == {**usual, "threshold": 0.4}
    three.wait()
    assert [box[1] for box in boxes(three, video)] == [10] * 8
    maps = f"/api/videos/{video}/maps?start=0&results="
    assert "immutable" not in three.client.get(maps + key).headers.get("cache-control", "")
    now = three.client.get(f"/api/videos/{video}").json()["results_key"]
    assert now != key
    assert "immutable" in three.client.get(maps + now).headers["cache-control"]
    three.client.post("/api/settings", json={"presence": 0.9})
    three.wait()
    assert boxes(three, video) == [None] * 8
    three.client.post("/api/settings", json={})
    assert all(card["state"] == "ready" for card in cards(three))
    assert boxes(three, video) == before
    assert three.tables() == 9


def test_results_of_old_settings_are_forgotten_but_for_the_last_ones(three):
    video, own = three.ids[0], f"{three.ids[0]}.{three.library.active.key}"

    def stored_with(threshold):
        """Names of the files of the video, once all is localized with a threshold."""
        three.client.post("/api/settings", json={"threshold": threshold})
        three.wait()
        assert [box[1] for box in boxes(three, video)] == [6 + 10 * (threshold or 0)] * 8
        return {path.name for path in (three.workspace.root / "videos").glob(f"{video}.*")}

    first, second, third, fourth = (stored_with(value) for value in (None, 0.1, 0.2, 0.3))
    assert first < second < third
    assert third - fourth == {f"{own}.csv", f"{own}.maps", f"{own}.video.json"}
    assert {len(third - second), len(fourth - third)} == {3}
    assert stored_with(0.1) == fourth  # it was kept
    again = stored_with(None)
    assert fourth - again == second - first
    assert first < again


def test_a_real_model_takes_class_and_threshold_and_uses_the_segmenter_unless_it_is_switched_off(
    make_video, square_video, stored_run, box_segmenter_files, tmp_path
):
    video = make_video(tmp_path / "video.mkv", square_video("cat", 12, 12)[0], codec="ffv1", pix_fmt="bgr0")

    def load(_path):
        return Localizer.load(stored_run, "cpu", masks=True, refine=box_segmenter_files)

    with serving(tmp_path / "page", [video], load=load, segmenter="boxes") as server:
        assert server.client.get("/api/videos").json()["segmenter"] is True
        refined = list(load(None)(video))
        assert boxes(server, server.video) == [pytest.approx(one.box, abs=0.01) for one in refined]
        other = next(tag for tag in load(None).tags if tag != refined[0].tag)
        server.client.post("/api/tags", json={"tags": {server.video: other}})
        server.client.post("/api/settings", json={"refine": False, "threshold": 0.9})
        server.wait()
        plain = list(Localizer.load(stored_run, "cpu", tag=other, threshold=0.9)(video))
        assert boxes(server, server.video) == [pytest.approx(one.box, abs=0.01) for one in plain]
        assert server.library.video(server.video).results.rows.tag == [other] * 12
        server.client.post("/api/tags", json={"tags": {server.video: ""}})
        server.client.post("/api/settings", json={})
        assert cards(server)[0]["state"] == "ready"  # at once: it is stored
        assert boxes(server, server.video)[0] == pytest.approx(refined[0].box, abs=0.01)


def test_classes_and_settings_are_remembered_and_not_computed_again(make_video, tmp_path):
    video = make_video(tmp_path / "video.mp4", 6)
    with serving(tmp_path / "page", [video]) as server:
        key = server.video
        server.client.post("/api/tags", json={"tags": {key: "dog"}})
        server.client.post("/api/settings", json={"threshold": 0.2})
        eventually(lambda: server.library.videos()[0].state == "ready")

    class Idle(MovingBox):
        def stream(self, *_args, **_how):
            raise AssertionError("what is stored is computed again")

    with serving(tmp_path / "page", model=Idle) as server:
        (card,) = cards(server)
        assert (card["state"], card["class"], card["found"]) == ("ready", "dog", "dog")
        assert boxes(server, key)[0] == [5, 8, 25, 30]


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("tags", {"tags": {"0" * 24: "cat"}}, 404, "no video with this id"),
        ("tags", {"tags": {}}, 422, ""),
        ("settings", {"presence": 1.5}, 422, "presence"),
        ("settings", {"treshold": 0.5}, 422, "treshold"),
    ],
)
def test_what_cannot_be_set_is_refused(served, path, body, status, words):
    answer = served.client.post(f"/api/{path}", json=body)
    assert answer.status_code == status
    assert words in answer.json()["error"]
    assert json.loads((served.workspace.root / "colocam-serve.json").read_text())["tags"] == {}


def test_what_the_model_cannot_do_is_refused_and_of_another_model_left_out(make_video, tmp_path):
    class Other(MovingBox):
        tags = ("horse",)
        card = type("Card", (), {"size": 32, "presence": None})

    beside = model_file(tmp_path / "other.onnx")
    load = {"model.onnx": MovingBox, "other.onnx": lambda: Other(17.0)}
    video = make_video(tmp_path / "video.mp4", 6)
    with serving(tmp_path / "page", [video], beside=[beside], load=lambda path: load[path.name]()) as server:
        video = server.library.videos()[0]
        refused = server.client.post("/api/tags", json={"tags": {video.id: "horse"}})
        assert refused.status_code == 422
        assert refused.json()["error"].endswith("does not know the class horse: choose one of cat, dog")
        server.client.post("/api/tags", json={"tags": {video.id: "dog"}})
        server.client.post("/api/settings", json={"presence": 0.5})
        server.client.post("/api/models", json={"key": server.library.beside[0].key})
        server.wait()
        assert video.state == "ready"
        refused = server.client.post("/api/settings", json={"presence": 0.5})
        assert (refused.status_code, "cannot tell presence" in refused.json()["error"]) == (422, True)


def test_a_video_that_is_being_localized_is_not_finished_with_old_settings(make_video, tmp_path):
    begun, ended = threading.Event(), threading.Event()

    class Slow(MovingBox):
        def stream(self, frames, *, images, stopping, **_):
            if self.tag == "dog":
                yield from super().stream(frames, images=images)
                return
            begun.set()
            eventually(lambda: any(one.is_set() for one in stopping))
            ended.set()

    first = make_video(tmp_path / "first.mp4", 4)
    with serving(tmp_path / "page", model=Slow) as server:
        video = server.library.add(first)
        assert begun.wait(60)
        server.client.post("/api/tags", json={"tags": {video.id: "dog"}})
        assert ended.wait(60)
        eventually(lambda: video.state == "ready")
        assert set(video.results.rows.tag) == {"dog"}


def test_select_videos_and_set_their_class_in_the_browser(page, three):
    with listening(three) as address:
        opened = ServedPage(page, three, address)
        opened.until("document.querySelectorAll('.video.ready').length === 3")
        page.select_option("#sort", "added")
        page.get_by_label("Select cat/one").focus()  # by keys alone
        opened.press("Space")
        assert "1 selected" in page.locator(".chosen").inner_text()
        page.get_by_label("Select three").click(modifiers=["Shift"])
        assert "3 selected" in page.locator(".chosen").inner_text()
        page.locator(".video .open").nth(2).click(modifiers=["Shift"])
        assert "2 selected" in page.locator(".chosen").inner_text()
        opened.click("Class…")
        assert "Class of 2 videos" in opened.dialog()
        assert page.locator("#video-class option").all_inner_texts() == [
            "found by the model",
            "as in their folders: cat, dog",
            "cat",
            "dog",
        ]
        page.select_option("#video-class", "folders")
        opened.click("Apply")
        opened.until(
            "document.querySelectorAll('.video.ready').length === 3 && document.body.innerText.includes('dog (set)')"
        )
        assert [card["class"] for card in cards(three)] == ["cat", "dog", ""]
        # Settings of all videos count in the video that is opened, and its class can be set there too.
        opened.click("Settings…")
        assert page.locator("#setting-refine").count() == 0  # the server has no segmenter
        page.fill("#setting-threshold", "0.4")
        opened.press("Enter")
        opened.until("!document.querySelector('dialog')")
        opened.open(three.ids[1])
        opened.until_box(5, 10, 25, 30)
        opened.click("More")
        opened.page.locator("#more-menu button", has_text="Video’s class…").click()
        page.select_option("#video-class", "=cat")
        opened.click("Apply")
        opened.until("window.colocam.video.class === 'cat' && window.colocam.seen().tag === 'cat'")
        # A segmenter can be switched off.
        three.library.segmenter = "boxes"
        page.evaluate("location.hash = ''")
        opened.until("document.querySelectorAll('.video.ready').length === 3")
        opened.click("Settings…")
        page.uncheck("#setting-refine")
        opened.press("Enter")
        opened.until("!document.querySelector('dialog')")
        assert three.library.workspace.settings.refine is False


def test_results_with_more_looks_have_a_key_of_their_own():
    assert Wanted().key("model") == "model"
    twice, tagged = Wanted(looks=2), Wanted(tag="cat")
    assert len({one.key("model") for one in (Wanted(), twice, tagged, twice._replace(tag="cat"))}) == 4
    earlier = hashlib.blake2b(json.dumps(["cat", None, None, False, ""]).encode(), digest_size=6).hexdigest()
    assert tagged.key("model") == f"model-{earlier}"  # as in 0.2.0
    assert with_wanted(MovingBox(), twice).looks == 2
    unchanged = MovingBox()
    assert with_wanted(unchanged, Wanted(tag="unknown")) is unchanged


def test_results_with_a_prior_have_a_key_of_their_own():
    plain, weighed = Wanted(tag="cat"), Wanted(tag="cat", prior="1f0c")
    keys = {one.key("model") for one in (Wanted(), Wanted(prior="1f0c"), Wanted(prior="2a"), plain, weighed)}
    assert len(keys) == 5
    assert weighed._replace(looks=2).key("model") not in {weighed.key("model"), plain._replace(looks=2).key("model")}
    unchanged = MovingBox()
    assert with_wanted(unchanged, Wanted(prior="1f0c")) is unchanged  # it has the prior already
