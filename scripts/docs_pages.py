"""Write the pages that Zensical builds the documentation site from (``make docs``) into ``build/docs``.

They are README.md as the first page, the pages of ``docs``, CHANGELOG.md, CONTRIBUTING.md and SECURITY.md, the cards of
ready models, an API page for each public module, and a page for each source file that another page links to. Links lead
to the same pages as on GitHub; docs/README.md gives the order of the navigation. The laboratory's notes (``lab/notes``)
are pages too, but only their index is in the navigation.
"""

import argparse
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOP = {"README.md": "index.md", "docs/README.md": "contents.md", "CHANGELOG.md": "changes.md"} | {
    name: name.lower() for name in ("CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md")
}
"""Pages with another path on the site than in ``docs``."""
PUBLIC = (
    *("colocam", "colocam.types", "colocam.errors", "colocam.run", "colocam.config", "colocam.video", "colocam.data"),
    "colocam.data.youtube_objects",
    *("colocam.models", "colocam.cams", "colocam.cams.clip", "colocam.losses", "colocam.losses.affinity"),
    # In place of its package, whose function train has the name of this module: griffe finds the module.
    *("colocam.training.train", "colocam.training.learning"),
    *("colocam.inference", "colocam.boxes", "colocam.segment", "colocam.labels", "colocam.evaluation.metrics"),
    *("colocam.report", "colocam.demo", "colocam.utils.extensions"),
    *("colocam.integrations.cvat_tasks", "colocam.integrations.fiftyone_sample", "colocam.integrations.hub_model"),
    *("colocam.integrations.label_studio_backend", "colocam.integrations.supervision_detections"),
)
"""The public modules, in the order of the API reference. All others may change with any version."""
SECTIONS = {
    "Guide": "guide/",
    "Integrations": "guide/integrations/",
    "Extend": "guide/extend/",
    "Method": "method/",
    "API reference": "api/",
}
"""Titles of the navigation, and the folders that they list without those of other titles."""
NOTES = "lab/notes"
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def main() -> None:
    """Write all pages anew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, default=ROOT / "build" / "docs", help="Folder of the pages.")
    write_pages(parser.parse_args().out)


def write_pages(out: Path) -> None:
    """Write all pages into ``out``, which is deleted first."""
    shutil.rmtree(out, ignore_errors=True)
    for folder, target in (("docs", out), (NOTES, out / "notes")):
        unwanted = shutil.ignore_patterns("*.md", "*.csv")
        shutil.copytree(ROOT / folder, target, ignore=unwanted, dirs_exist_ok=True)
    written = [path for folder in ("docs", NOTES) for path in relative((ROOT / folder).rglob("*.md"))]
    cards = relative((ROOT / "models").glob("*/MODEL_CARD.md"))
    pages = {path: site_path(path) for path in [*map(Path, TOP), *written, *cards]}
    sources: set[Path] = set()
    for path, page in pages.items():
        write(out / page, with_site_links((ROOT / path).read_text(encoding="utf-8"), path, sources))
    for source in sources:
        write(out / site_path(source), source_page(source))
    for module in PUBLIC:
        write(out / "api" / f"{module}.md", f"# {module}\n\n::: {module}\n")
    write(out / "SUMMARY.md", navigation(out))


def write(path: Path, text: str) -> None:
    """Write one file, with its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def relative(paths: Iterator[Path]) -> list[Path]:
    """The sorted paths, relative to the repository."""
    return sorted(path.relative_to(ROOT) for path in paths)


def site_path(path: Path) -> Path:
    """The page of a file or package of the repository, relative to the site."""
    if path.as_posix() in TOP:
        return Path(TOP[path.as_posix()])
    if path.parts[0] == "docs" or path.is_relative_to(NOTES):
        inside = Path(*path.parts[1:])
        return inside.with_name("index.md") if inside.name == "README.md" else inside
    if path.name == "MODEL_CARD.md":
        return Path("models", f"{path.parts[1]}.md")
    module = ".".join(path.parts[1:])
    if module in PUBLIC:
        return Path("api", f"{module}.md")
    return Path("source", *path.parts[1:-1], f"{path.name}.md")


def with_site_links(text: str, page: Path, sources: set[Path]) -> str:
    """The text of a page with its links as the site needs them; adds the source files that it links to."""
    start = site_path(page).parent

    def moved(link: re.Match[str]) -> str:
        before, target, anchor, after = link.groups(default="")
        if re.match(r"[a-z]+:", target):
            return link.group()
        path = Path(os.path.normpath(page.parent / target))
        note = path.is_relative_to(NOTES)
        if (note or path.parts[0] == "docs") and path.suffix != ".md":
            return before + os.path.relpath(Path(*path.parts[1:]), start) + after
        if path.parts[0] in {"src", "lab"} and not note:
            sources.add(path)
        return before + os.path.relpath(site_path(path), start) + anchor + after

    parts = []
    end = 0
    for code in CODE.finditer(text):
        parts += [LINK.sub(moved, text[end : code.start()]), code.group()]
        end = code.end()
    return "".join([*parts, LINK.sub(moved, text[end:])])


def source_page(path: Path) -> str:
    """The text of a source file, or of all files in a folder, as code."""
    files = [path] if (ROOT / path).is_file() else relative((ROOT / path).glob("*.[py]*"))
    parts = ["---\nsearch:\n  exclude: true\n---\n", f"# {path.as_posix().removeprefix('src/colocam/')}\n"]
    for file in files:
        language = {".py": "python", ".yaml": "yaml"}[file.suffix]
        parts += [f"## {file.name}\n" if file != path else "", f"````{language}"]
        parts += [(ROOT / file).read_text(encoding="utf-8").rstrip(), "````\n"]
    return "\n".join(parts)


def navigation(out: Path) -> str:
    """The table of contents in the form of literate-nav: the first page of a folder, then in the order of links."""
    lines = ["* [colocam](index.md)", "* [Documentation](contents.md)"]
    for title, folder in SECTIONS.items():
        others = [other for other in SECTIONS.values() if other.startswith(folder) and other != folder]
        found = [path.relative_to(out).as_posix() for path in sorted((out / folder).rglob("*.md"))]
        order = [f"{folder}index.md", *links(out, "contents.md"), *links(out, f"{folder}index.md")]
        order += [f"api/{module}.md" for module in PUBLIC] + found
        found = sorted((page for page in found if not page.startswith(tuple(others))), key=order.index)
        lines += [f"* {title}", *(f"    * [{heading(out / page)}]({page})" for page in found)]
    cards = sorted(f"models/{page.name}" for page in (out / "models").glob("*.md"))
    project = [*list(TOP.values())[2:], "architecture.md", *cards, "notes/index.md"]
    lines += ["* Project", *(f"    * [{heading(out / page)}]({page})" for page in project)]
    return "\n".join(lines) + "\n"


def links(out: Path, page: str) -> list[str]:
    """The pages that a page links to, in order."""
    text = (out / page).read_text(encoding="utf-8") if (out / page).is_file() else ""
    return [os.path.normpath(Path(page).parent / target) for _, target, _, _ in LINK.findall(text)]


def heading(page: Path) -> str:
    """The first heading of a page."""
    return page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")


if __name__ == "__main__":
    main()
