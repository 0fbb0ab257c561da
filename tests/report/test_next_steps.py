"""The second screen: worst videos with links, confused classes, what a few boxes would bring; and the headline."""

import json
import re
from html.parser import HTMLParser

import pytest

from colocam.evaluation.metrics import CorLoc
from colocam.report.gallery import gallery
from colocam.report.next_steps import confused_pairs, few_boxes, worse_classes
from colocam.report.page import render
from colocam.serve.library import ID_DIGITS
from colocam.types import Clip
from colocam.utils.digests import FileDigests

MINUS = "\N{MINUS SIGN}"


class Section(HTMLParser):
    """The text and the links of one section."""

    def __init__(self, html, name):
        super().__init__()
        start = html.index(f'<section id="{name}"')
        self.words, self.links, self.tags = [], [], []
        self.feed(html[start : html.index("</section>", start)])
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.links += [value for key, value in attrs if key == "href"]

    def handle_data(self, data):
        self.words.append(data)


def change(run, **parts):
    path = run / "evaluation.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | parts))


def test_the_worst_videos_come_first(make_run):
    run = make_run(per_group=8)
    overlaps = {}
    for group in gallery(run / "cases.npz"):
        for case in group.cases:
            if case.images[-1].overlap is not None and case.images[-1].overlap < 0.5:
                overlaps[case.clip] = min(case.images[-1].overlap, overlaps.get(case.clip, 1.0))
    assert overlaps
    section = Section(render(run), "next")
    expected = sorted(overlaps, key=overlaps.get)[:6]
    places = [section.text.index(name) for name in expected]
    assert places == sorted(places)
    assert f"IoU {overlaps[expected[0]]:.2f}" in section.text
    assert section.links == []
    assert "The files of these videos are no longer where they were" in section.text
    assert f"colocam serve {run} --port 8321" in section.text


def test_links_lead_to_the_video_as_the_page_knows_it(make_run, add_review, tmp_path, monkeypatch):
    run = make_run()
    (run / "cases.npz").unlink()
    video = tmp_path / "cats" / "01 &.mp4"
    video.parent.mkdir()
    video.write_bytes(b"a video")
    digest = FileDigests().of_file(video)
    clip = Clip("cat/01", "cat", "test", video, "", digest=digest)
    monkeypatch.setattr("colocam.report.next_steps.run_clips", lambda _: {"cat/01": clip})
    add_review(run, ("cat/01", 9), ("cat/01", 4), ("gone/02", 7))
    (run / "review.csv").write_text("video,frame\ncat/01,9\ngone/02,1\ngone/02,2\ncat/01,4\ncat/01,5\n")
    section = Section(render(run), "next")
    assert section.links == [f"http://127.0.0.1:8321/#video={digest[:ID_DIGITS]}&frame=9"]
    assert re.search(r"cat/01 .*frame 9 is doubtful; 3 frames to check gone/02 .*; 2 frames to check", section.text)
    assert f"colocam serve {run}" in section.text
    assert "--port 8321" in section.text


def test_classes_that_are_confused():
    counts = {"bus": {"bus": 7, "cat": 3}, "cat": {"cat": 5}, "owl": {"bus": 4, "owl": 4, "cat": 1}}
    assert [(pair.tag, pair.taken_for, pair.frames, pair.of) for pair in confused_pairs(counts)] == [
        ("owl", "bus", 4, 9),
        ("bus", "cat", 3, 10),
        ("owl", "cat", 1, 9),
    ]
    assert confused_pairs({"bus": {"bus": 2}}) == []


def test_confusions_stand_in_the_section(run):
    change(run, confusion={"<i>owl": {"bus": 4, "<i>owl": 5}, "bus": {"bus": 3}})
    assert "<i>owl mistaken for bus : 4 of 9 frames" in Section(render(run), "next").text


@pytest.mark.parametrize(
    ("ours", "told"),
    [
        (
            {"bus": 70.0, "rocket": 60.0, "cat": 88.9},
            f"Worse than LayerCAM: rocket {MINUS}15.0, cat {MINUS}1.1 points.",
        ),
        ({"bus": 70.0, "rocket": 75.0, "cat": 90.0}, ""),
        ({"bus": 70.0, "rocket": 74.96, "cat": None}, ""),
        ({"bus": 1.0, "rocket": 2.0, "cat": 3.0, "owl": 4.0}, "and 1 more points."),
    ],
)
def test_where_the_method_is_worse_than_the_plain_cam(ours, told):
    plain = {"bus": 70.0, "rocket": 75.0, "cat": 90.0, "owl": 50.0}
    line = worse_classes({"layercam": CorLoc(70.0, classes=plain), "colocam": CorLoc(70.0, classes=ours)})
    assert line.endswith(told)
    assert bool(line) == bool(told)
    assert worse_classes({"colocam": CorLoc(70.0, classes=ours)}) == ""


def test_the_headline_says_it(run):
    evaluation = json.loads((run / "evaluation.json").read_text())
    methods = evaluation["methods"]
    for tag in methods["colocam"]["tags-only"]["classes"]:
        methods["colocam"]["tags-only"]["classes"][tag] = 90.0
        methods["layercam"]["tags-only"]["classes"][tag] = 60.0
    methods["colocam"]["tags-only"]["classes"]["kite"] = 45.0
    change(run, methods=methods)
    html = render(run)
    assert f"Worse than LayerCAM: kite {MINUS}15.0 points." in html[: html.index("<nav")]
    methods["colocam"]["tags-only"]["classes"]["kite"] = 60.0
    change(run, methods=methods)
    assert "Worse than" not in render(run)


@pytest.mark.parametrize(
    ("validation", "told"),
    [(64.3, "+4.2 points"), (60.1, "boxes do not help to choose it here"), (58.0, "boxes do not help")],
)
def test_what_a_few_boxes_would_bring_is_what_was_measured(run, validation, told):
    protocols = {"tags-only": {"colocam": CorLoc(60.1)}, "validation": {"colocam": CorLoc(validation)}}
    assert told in few_boxes(protocols)
    assert few_boxes({"tags-only": protocols["tags-only"]}) == ""
    evaluation = json.loads((run / "evaluation.json").read_text())["methods"]["colocam"]
    text = Section(render(run), "next").text
    assert f"CorLoc {evaluation['tags-only']['average']:.1f} % with tags alone" in text
    assert f"colocam learn {run} corrections.csv -o {run}-learned" in text


def test_tables_of_protocols_are_folded(run):
    section = Section(render(run), "results")
    assert section.tags[1] == ("details", {"class": "research"})
    assert section.text.startswith("For researchers: localization by protocol")
    assert "oracle-per-class" in section.text
