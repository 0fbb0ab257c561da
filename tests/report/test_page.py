import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from colocam.errors import ColocamError
from colocam.report import write_report
from colocam.report.page import render

VOID = {"meta", "img", "br", "link", "input", "hr"}
SECTIONS = ["next", "results", "classes", "gallery", "training", "data", "environment", "configuration"]


class Page(HTMLParser):
    """Checks that tags nest, and gathers what tests ask for."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.text, self.ids = [], [], {}, []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert len(attrs) == len(dict(attrs)), f"an attribute of {tag} stands twice"
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for key, value in attrs if key == "id"]
        if tag not in VOID:
            self.open.append((tag, dict(attrs).get("id")))

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1][0] == tag, f"</{tag}> closes <{self.open[-1][0]}>"
        self.open.pop()

    def handle_data(self, data):
        for _, name in self.open:
            self.text[name] = self.text.get(name, "") + data

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]

    def sections(self):
        """Ids of the sections, to each of which there is a link."""
        found = [attrs["id"] for attrs in self.all("section")]
        links = [attrs["href"] for attrs in self.all("a")]
        assert [link for link in links if link.startswith("#")] == [f"#{name}" for name in found]
        return found


@pytest.fixture(scope="module")
def html(finished):
    return render(finished)


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


def squeeze(text):
    return " ".join(text.split())


def test_the_file_is_written_whole_and_light(run):
    path = write_report(run)
    assert path == run / "report" / "index.html"
    assert path.read_text(encoding="utf-8") == render(run)
    assert path.stat().st_size < 6_000_000
    assert [file.name for file in path.parent.iterdir()] == ["index.html"]


def test_all_sections_are_there_and_linked(page):
    assert page.sections() == SECTIONS
    assert len(page.ids) == len(set(page.ids))
    labeled = [attrs["aria-labelledby"] for _, attrs in page.tags if "aria-labelledby" in attrs]
    assert set(labeled) <= set(page.ids)


def test_nothing_is_fetched_and_nothing_runs(html, page):
    assert not page.all("script")
    assert not page.all("link")
    assert not page.all("iframe")
    assert not [attrs for _, attrs in page.tags if any(key.startswith("on") for key in attrs)]
    addresses = [attrs[key] for _, attrs in page.tags for key in ("src", "xlink:href", "data") if attrs.get(key)] + [
        attrs["href"] for tag, attrs in page.tags if tag != "a" and attrs.get("href")
    ]
    assert all(address.startswith(("data:image/", "#")) for address in addresses)
    links = set(re.findall(r"https?://[^\s\"'<]+", html))
    assert links <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)
    policy = next(
        attrs["content"] for attrs in page.all("meta") if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy


def test_headline_states_the_main_numbers(finished, page):
    evaluation = json.loads((finished / "evaluation.json").read_text())
    ours, base = (evaluation["methods"][method]["tags-only"] for method in ("colocam", "layercam"))
    text = squeeze(page.text["top"])
    assert "demo run" in text
    assert "300 frames of 18 videos (test split), 5 classes." in text
    assert (
        f"CoLo-CAM CorLoc {ours['average']:.1f}% {ours['interval'][0]:.1f}–{ours['interval'][1]:.1f} · tags-only"
        in text
    )
    assert f"LayerCAM CorLoc {base['average']:.1f}%" in text
    assert f"Gain over LayerCAM +{ours['average'] - base['average']:.1f}" in text
    assert "Classification accuracy 80.0% 70.0–90.0" in text


def test_tables_hold_every_number(finished, page):
    evaluation = json.loads((finished / "evaluation.json").read_text())
    results, classes = squeeze(page.text["results"]), squeeze(page.text["classes"])
    for cells in evaluation["methods"].values():
        for protocol, cell in cells.items():
            assert protocol in results
            numbers = f"{cell['average']:.1f} {cell['interval'][0]:.1f}–{cell['interval'][1]:.1f} {cell['frames']:.1f}"
            assert f"{numbers} {cell['top1']['average']:.1f}" in results
    assert {"0.43", "0.30–0.30"} <= set(results.split())  # thresholds
    for protocol in evaluation["methods"]["colocam"]:
        for tag, accuracy in evaluation["classification"]["classes"].items():
            values = [cells[protocol]["classes"][tag] for cells in evaluation["methods"].values()]
            shown = " ".join(f"{value:.1f}" for value in values)
            gain = f"{values[-1] - values[0]:+.1f}".replace("-", "−")
            assert f"{tag} {shown} {gain} {accuracy:.1f}" in classes


def test_hostile_tags_are_text(html, page):
    assert "<script>" not in html
    assert "<script>alert(1)</script>" in page.text["classes"]
    assert "<script>alert(1)</script>" in page.text["gallery"]
    assert "# <b>square</b>" in page.text["configuration"]
    assert not page.all("b") or "square" not in [attrs.get("class") for attrs in page.all("b")]
    assert "кошка" in page.text["classes"]


def test_pictures_are_described(page):
    images = page.all("img")
    assert len(images) == 12 * 4 + 3
    assert all(len(attrs["alt"]) > 10 for attrs in images)
    for attrs in page.all("svg"):
        assert attrs["role"] == "img"
        assert len(attrs["aria-label"]) > 10


def test_environment_data_and_configuration(page):
    assert "device.threads 2" in squeeze(page.text["environment"])
    assert "argv a, b" in squeeze(page.text["environment"])
    assert "clips 18" in squeeze(page.text["data"])
    assert "crop: 112" in page.text["configuration"]


def test_many_cases_fold_away_but_none_is_lost(make_run):
    page = Page(render(make_run(per_group=8)))
    assert len(page.all("img")) == 4 * 8 * 4 + 3
    assert squeeze(page.text["gallery"]).count("2 more") == 4


@pytest.mark.parametrize(
    ("removed", "sections"),
    [
        (["evaluation.json"], ["gallery", "training", "environment", "configuration"]),
        (["cases.npz", "environment.json"], ["next", "results", "classes", "training", "data", "configuration"]),
        (["metrics.jsonl"], ["next", "results", "classes", "gallery", "data", "environment", "configuration"]),
        (["evaluation.json", "cases.npz", "metrics.jsonl", "environment.json"], ["configuration"]),
    ],
)
def test_partial_runs(run, removed, sections):
    for name in removed:
        (run / name).unlink()
    page = Page(render(run))
    assert page.sections() == sections
    assert ("has not been evaluated" in squeeze(page.text["top"])) == ("evaluation.json" in removed)


def test_frames_with_several_objects_and_doubtful_ones(run, add_review):
    evaluation = json.loads((run / "evaluation.json").read_text(encoding="utf-8"))
    shares = {"0.3": 81.0, "0.5": 61.0, "0.7": 26.0, "mean": 56.0}
    ways = {"tags-only": {"recall": shares, "precision": shares}, "one box": {"recall": shares, "precision": None}}
    evaluation["instances"] = {"frames": 7, "boxes": 19, "methods": {"colocam": ways, "layercam": ways}}
    (run / "evaluation.json").write_text(json.dumps(evaluation), encoding="utf-8")
    add_review(run, ("<b>/v", 4), ("<b>/v", 9))
    page = Page(render(run))
    assert page.sections() == [*SECTIONS[:3], "instances", SECTIONS[3], "review", *SECTIONS[4:]]
    assert squeeze(page.text["instances"]).count("81.061.026.056.0") == 4
    text = squeeze(page.text["review"])
    assert "doubt 0.88: a & b" in text
    assert text.index("frame 4") < text.index("frame 9")
    assert "<b>/v" in text
    (run / "review.npz").write_bytes(b"damaged")
    with pytest.raises(ColocamError, match="run 'colocam review' again"):
        render(run)


def test_one_method_alone_in_a_folder_with_an_odd_name(make_run):
    name = "прогон \"2\" & 'co' <i>"
    page = Page(render(make_run(name, methods=("layercam",))))
    text = squeeze(page.text["top"])
    assert name in text
    assert "LayerCAM CorLoc" in text
    assert "Gain" not in text
    assert "gain" not in page.text["classes"]


def test_an_evaluation_with_holes(run):
    data = {"split": "test", "frames": 3, "videos": 2}
    colocam = {"validation": {"average": 50, "classes": {"cat": None}}}
    evaluation = {"format": 2, "methods": {"colocam": colocam}, "classification": None, "data": data}
    (run / "evaluation.json").write_text(json.dumps(evaluation))
    page = Page(render(run))
    text = squeeze(page.text["top"])
    assert "CoLo-CAM CorLoc 50.0% validation" in text
    assert "Gain" not in text
    assert "Classification" not in text
    assert "cat –" in squeeze(page.text["classes"])


def test_clip_es_has_a_title_and_is_the_baseline_where_it_gave_the_seeds(run):
    path = run / "evaluation.json"
    evaluation = json.loads(path.read_text())
    methods = evaluation["methods"]
    methods["colocam"]["tags-only"]["average"] = methods["layercam"]["tags-only"]["average"] - 3.2
    evaluation["methods"] = {"clip-es": methods.pop("layercam"), **methods}
    path.write_text(json.dumps(evaluation))
    assert "Gain over CLIP-ES −3.2" in squeeze(Page(render(run)).text["top"])


def test_the_report_of_a_run_of_version_0_1_0(tmp_path):
    stored = Path(__file__).parents[1] / "stored" / "version-0.1.0" / "run"
    shutil.copytree(stored, tmp_path / "run")
    page = Page(render(tmp_path / "run"))
    results, classes = squeeze(page.text["results"]), squeeze(page.text["classes"])
    old = json.loads((stored / "evaluation.json").read_text())
    for method in ("layercam", "fcam", "colocam"):
        for cell in old[method].values():
            assert f"{cell['average']:.1f} {cell['interval'][0]:.1f}–{cell['interval'][1]:.1f}" in results
            assert all(f"{cell[tag]:.1f}" in classes for tag in ("bus", "cat", "owl"))
    for value in old["classification"]["per_class"].values():
        assert f"{value:.1f}" in classes


def test_not_a_run_folder(tmp_path):
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ColocamError, match=r"not a run folder.*config\.yaml"):
            write_report(folder)
        assert not (folder / "report").exists()


@pytest.mark.parametrize(
    "content",
    ["{", "[1]", "", '{"format": 2, "methods": {"cam": {"validation": {}}}}', '{"format": 2}', '{"format": 3}'],
)
def test_a_damaged_or_later_evaluation_is_one_line_and_keeps_the_old_report(run, content):
    before = write_report(run).read_bytes()
    (run / "evaluation.json").write_text(content)
    problem = " has format 3.*update colocam" if "3" in content else ".*evaluate the run again"
    with pytest.raises(ColocamError, match=rf"evaluation\.json{problem}") as caught:
        write_report(run)
    assert "\n" not in str(caught.value)
    assert (run / "report" / "index.html").read_bytes() == before


@pytest.mark.parametrize("scheme", [0, 1])
def test_text_has_contrast_in_both_schemes(html, scheme):
    blocks = re.findall(r":root \{(.*?)\}", html, re.DOTALL)
    palette = dict(re.findall(r"(--[\w-]+): (#\w+);", blocks[scheme]))
    for ink in ("--ink", "--soft", "--ours", "--good", "--bad"):
        for ground in ("--paper", "--card"):
            assert contrast(palette[ink], palette[ground]) >= 4.5, (ink, ground)
    for line in ("--base", "--curve-train", "--curve-val"):
        assert contrast(palette[line], palette["--card"]) >= 3
    assert set(re.findall(r"var\((--[\w-]+)", html)) <= set(re.findall(r"(--[\w-]+):", html))


def contrast(a, b):
    """Contrast ratio of WCAG 2."""

    def luminance(color):
        digits = color[1:] if len(color) == 7 else "".join(2 * c for c in color[1:])
        channels = np.array([int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)])
        linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_half_of_a_surrogate_pair_becomes_a_question_mark(run):
    facts = json.loads((run / "environment.json").read_text(encoding="utf-8"))
    facts["python"] = "3.11 \udcff!"
    (run / "environment.json").write_text(json.dumps(facts), encoding="utf-8")
    assert "3.11 ?!" in write_report(run).read_text(encoding="utf-8")
