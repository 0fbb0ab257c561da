"""Label Studio video, read by its own tools: the configuration's parser and the expansion of key frames."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from label_studio_tools.core.label_config import is_video_object_tracking, parse_config
from label_studio_tools.postprocessing.video import extract_key_frames

from colocam.errors import ColocamError
from colocam.labels import Options, export
from tests.helpers.label_scenes import exported, row, scenes, write_table


def shown(result):
    """Frames from 0 in which a region is seen, with corners in percent, as Label Studio expands them."""
    (region,) = extract_key_frames([result])
    return {
        key["frame"] - 1: np.array([key["x"], key["y"], key["x"] + key["width"], key["y"] + key["height"]])
        for key in region["value"]["sequence"]
    }


def tasks_of(out):
    return json.loads((out / "tasks.json").read_text(encoding="utf-8"))


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), tolerance=st.sampled_from([0, 0.5, 1, 10]))
def test_label_studio_shows_what_the_table_says(data, tolerance):
    with exported(data.draw(scenes()), "label-studio", options=Options(tolerance=tolerance)) as (out, video):
        ((task,), config) = tasks_of(out), (out / "config.xml").read_text(encoding="utf-8")
    parsed = parse_config(config)
    assert is_video_object_tracking(parsed)
    (prediction,) = task["predictions"]
    assert len(prediction["result"]) == len(video.tracks)
    for result, track in zip(prediction["result"], video.tracks, strict=True):
        assert parsed[result["from_name"]]["type"].lower() == result["type"] == "videorectangle"
        assert parsed[result["from_name"]]["to_name"] == [result["to_name"]]
        assert result["value"]["labels"] == [track.tag]
        assert track.tag in parsed["videoLabels"]["labels"]
        assert result["value"]["framesCount"] == 40
        frames = [key["frame"] for key in result["value"]["sequence"]]
        assert frames == sorted(set(frames))
        assert result["value"]["sequence"][-1]["enabled"] is False
        seen = shown(result)
        stated = dict(zip(video.rows.frame[track.rows].tolist(), video.rows.box[track.rows], strict=True))
        assert set(seen) & set(video.listed.tolist()) == set(stated)
        for frame, box in stated.items():
            np.testing.assert_allclose(seen[frame] / 100 * (97, 71, 97, 71), box, atol=tolerance + 1e-6)


def test_a_task_per_video_with_rate_and_address(tmp_path):
    box = (0, 0, 97, 71)
    tables = [
        write_table(tmp_path / "a.csv", [row(0, box, score=0.5), row(1, box, score=1)], fps="30000/1001"),
        write_table(tmp_path / "b.csv", [row(0, box, "<&>")], video="猫 #1.mp4"),
    ]
    out = export(tables, "label-studio", tmp_path / "out", options=Options(url="https://example.org/v/"))
    first, second = tasks_of(out)
    assert first["data"]["fps"] == pytest.approx(29.97, abs=1e-3)
    assert first["data"]["video"] == "https://example.org/v/clip%20one.mp4"
    assert second["data"]["video"] == "https://example.org/v/%E7%8C%AB%20%231.mp4"
    (result,) = first["predictions"][0]["result"]
    assert result["score"] == 0.75
    key = result["value"]["sequence"][0]
    assert [key[name] for name in ("x", "y", "width", "height", "rotation")] == [0, 0, 100, 100, 0]
    parsed = parse_config((out / "config.xml").read_text(encoding="utf-8"))
    assert parsed["videoLabels"]["labels"] == ["<&>", "cat"]
    assert parsed["box"]["inputs"] == [{"type": "Video", "value": "video"}]
    assert 'frameRate="$fps"' in (out / "config.xml").read_text(encoding="utf-8")


def test_a_video_of_variable_rate_is_placed_by_time():
    """The player counts frames of a constant rate: a long frame covers many of them, of quick ones the last shows."""
    times = [0.5, 0.51, 0.52, 0.7, 1.5, 1.54]
    rows = [row(i, (i, 0, i + 10, 10), pts=time) for i, time in enumerate(times[:5])] + [row(5, pts=times[5])]
    with exported(rows, "label-studio", frames=6, duration=1.08, options=Options(tolerance=0)) as (out, _):
        (result,) = tasks_of(out)[0]["predictions"][0]["result"]
    seen = shown(result)
    assert result["value"]["framesCount"] == 27
    assert {frame: round(float(box[0] * 0.97), 6) for frame, box in seen.items() if frame in {0, 1, 5, 25, 26}} == {
        0: 1,  # shown at 0.52 s, the middle of the player's first frame
        1: 2,
        5: 3,
        25: 4,
    }


def test_a_task_per_picture_of_a_folder(tmp_path):
    names = [f"猫 {number}.png" for number in range(3)]
    rows = [row(0, (0, 0, 97, 71), score=0.5), row(0, (0, 35.5, 48.5, 71), "dog"), row(2)]
    table = write_table(tmp_path / "a.csv", rows, video="my pets", frames=3, pictures=names)
    out = export([table], "label-studio", tmp_path / "out", options=Options(url="https://example.org/"))
    parsed = parse_config((out / "config.xml").read_text(encoding="utf-8"))
    assert not is_video_object_tracking(parsed)
    assert parsed["box"]["inputs"] == [{"type": "Image", "value": "image"}]
    assert parsed["box"]["labels"] == ["cat", "dog"]
    first, last = tasks_of(out)
    assert first["data"]["image"] == "https://example.org/my%20pets/%E7%8C%AB%200.png"
    assert last["data"]["image"].endswith("%202.png")
    assert last["predictions"][0]["result"] == []
    whole, quarter = first["predictions"][0]["result"]
    for result, tag in ((whole, "cat"), (quarter, "dog")):
        assert parsed[result["from_name"]]["type"].lower() == result["type"] == "rectanglelabels"
        assert parsed[result["from_name"]]["to_name"] == [result["to_name"]]
        assert result["value"]["rectanglelabels"] == [tag]
    assert (whole["score"], "score" in quarter) == (0.5, False)
    assert [quarter["value"][name] for name in ("x", "y", "width", "height")] == [0, 50, 50, 50]
    video = write_table(tmp_path / "b.csv", rows)
    with pytest.raises(ColocamError, match="either videos or images, and a is a folder of images"):
        export([video, table], "label-studio", tmp_path / "both")
