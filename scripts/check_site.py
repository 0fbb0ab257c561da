"""Check the built documentation: every link leads somewhere, and no page loads anything from another host."""

import argparse
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
LOADED = {("link", "href"), ("object", "data"), ("use", "href"), ("video", "poster")}
"""Attributes beside ``src`` whose address a browser loads by itself; an ``a`` waits for a click."""
STYLE_URL = re.compile(r"""(?:url\(|@import\s+)["']?([^"')\s]+)""")


class Page(HTMLParser):
    """Addresses and anchors of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loaded: set[str] = set()
        self.linked: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the attributes of one element."""
        for name, value in attrs:
            if name in {"id", "name"}:
                self.anchors.add(value or "")
            elif name == "srcset":
                self.loaded.update(part.split()[0] for part in (value or "").split(","))
            elif name == "src" or (tag, name) in LOADED:
                self.loaded.add(value or "")
            elif (tag, name) == ("a", "href"):
                self.linked.add(value or "")
            elif name == "style":
                self.loaded.update(STYLE_URL.findall(value or ""))

    def handle_data(self, data: str) -> None:
        """Collect the addresses of a style sheet in the page."""
        if self.cdata_elem == "style":
            self.loaded.update(STYLE_URL.findall(data))


def main() -> None:
    """Print each fault; exit with 1 where there is one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path, nargs="?", default=ROOT / "site", help="Folder that Zensical wrote.")
    site = parser.parse_args().site.resolve()
    found = [*faults(site)]
    if not (site / "index.html").is_file():
        found.append(f"{site}: no index.html; run make docs")
    print("\n".join(found) or f"{site}: all links lead somewhere, nothing is loaded from another host")
    sys.exit(1 if found else 0)


def faults(site: Path) -> Iterator[str]:
    """One line for each address that is loaded from elsewhere or does not exist."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        if path.name == "404.html":  # served for any address, so its links are absolute
            continue
        for address in sorted(page.loaded | page.linked):
            if fault := _fault(site, pages, path, address, loaded=address in page.loaded):
                yield f"{path.relative_to(site)}: {address}: {fault}"
    for path in sorted(site.rglob("*.css")):
        for address in STYLE_URL.findall(path.read_text(encoding="utf-8")):
            if urlsplit(address).netloc:
                yield f"{path.relative_to(site)}: {address}: loaded from another host"


def _fault(site: Path, pages: dict[Path, Page], path: Path, address: str, *, loaded: bool) -> str:
    parts = urlsplit(address)
    if parts.netloc:
        return "loaded from another host" if loaded else ""
    if parts.scheme:  # data:, mailto:
        return ""
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_relative_to(site):
        return "outside the site"
    if not target.is_file():
        return "does not exist"
    anchor = unquote(parts.fragment)
    return "no such anchor" if anchor and target in pages and anchor not in pages[target].anchors else ""


if __name__ == "__main__":
    main()
