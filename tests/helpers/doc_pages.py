"""The pages of the documentation, and the commands and Python examples in them."""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
NOTES = ROOT / "lab" / "notes"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted(NOTES.rglob("*.md"))]
STUDY_PAGES = {
    page for page in PAGES if "studies" in page.parts and page.parent.name != "studies"
}  # written by commands
WRITTEN = [page for page in PAGES if page not in STUDY_PAGES]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
SHELL = ("", "bash")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def prose(text: str) -> str:
    return FENCE.sub("", text)


class Line(NamedTuple):
    """One call of colocam as a page prints it."""

    page: str
    arguments: tuple[str, ...]
    complete: bool
    """In a block to copy; a call within a sentence, or with an ellipsis, may leave out arguments."""


def calls(text: str) -> list[tuple[str, ...]]:
    """The arguments of each call of colocam in shell text."""
    text = re.sub(r"\$\w+", "0", text.replace("\\\n", " "))  # a variable of a loop
    tokens = shlex.shlex(text, posix=True, punctuation_chars=True)
    tokens.whitespace_split, tokens.whitespace = True, " \t"
    found: list[list[str]] = []
    current: list[str] | None = None
    for token in tokens:
        if token == "colocam":
            found.append(current := [])
        elif token == "\n" or set(token) <= set(";|&()<>"):
            current = None
        elif current is not None:
            current.append(token)
    return [tuple(call) for call in found]


def lines() -> list[Line]:
    found = []
    for page in WRITTEN:
        text = page.read_text(encoding="utf-8")
        for language, block in FENCE.findall(text):
            for part in block.replace("\\\n", " ").splitlines() if language in SHELL else ():
                if re.match(r"\s*(\$ |cat .*\| |(srun )?torchrun .* -m |)colocam |\s*for ", part):
                    found += [Line(name_of(page), call, "…" not in part) for call in calls(part.removeprefix("$ "))]
        for code in INLINE.findall(prose(text)):
            if code.startswith("colocam "):
                found += [Line(name_of(page), call, complete=False) for call in calls(code)]
    return list(dict.fromkeys(found))


def python_blocks(page: Path) -> list[str]:
    return [block for language, block in FENCE.findall(page.read_text(encoding="utf-8")) if language == "python"]
