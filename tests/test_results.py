"""Results that several pages state: the same figures as in ``docs/results.yaml``."""

import re

import pytest
import yaml

from tests.helpers.doc_pages import ROOT, name_of, prose

RESULTS = yaml.safe_load((ROOT / "docs" / "results.yaml").read_text(encoding="utf-8"))
FIELDS = {"what", "values", "data", "command", "seeds", "date", "device", "commit", "page"}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").rglob("*.md"))]
MARKER = re.compile(r"<!--=([\w-]+)-->")
VALUE = r"\d+\.\d ± \d+\.\d"
WORDS = r"\b\d+ of \d+(?= frames)"


def faults(text: str, results: dict) -> list[str]:
    """What a page states otherwise than the results, and figures that no marker explains."""
    found = []
    for line in prose(text).splitlines():
        before, *marked = MARKER.split(line)
        found += [f"no marker: {figure}" for figure in re.findall(f"{VALUE}|{WORDS}", before)]
        for name, stated in zip(marked[::2], marked[1::2], strict=True):
            result = results.get(name, {"values": []})
            values, words = re.findall(VALUE, stated), re.findall(WORDS, stated)
            if not values and not words:
                found.append(f"{name}: no figure after the marker")
            if values != result["values"][: len(values)] or {*words} - {result.get("words")}:
                found.append(f"{name}: {', '.join(values + words)}")
    return found


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pages_state_the_results(page):
    assert faults(page.read_text(encoding="utf-8"), RESULTS) == []


@pytest.mark.parametrize("name", RESULTS)
def test_results_can_be_repeated_and_are_used(name):
    result = RESULTS[name]
    assert FIELDS - {*result} == set()
    assert {*result} - FIELDS <= {"words"}
    source = (ROOT / result["page"]).read_text(encoding="utf-8")
    assert [value for value in result["values"] if value not in source] == []
    assert any(f"<!--={name}-->" in page.read_text(encoding="utf-8") for page in PAGES)


@pytest.mark.parametrize("name", [name for name in RESULTS if "words" in RESULTS[name]])
def test_words_never_promise_more(name):
    right, of = map(int, RESULTS[name]["words"].split(" of "))
    measured = float(RESULTS[name]["values"][0].split(" ± ")[0])
    assert measured - 4 < 100 * right / of <= measured


def test_the_readme_is_short():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 100
    assert [line for line in lines if len(line) > 110] == []
