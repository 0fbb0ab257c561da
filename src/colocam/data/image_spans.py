"""Some pictures of a folder, as one cell of a table: ``a.jpg;c.jpg..f.jpg`` (both ends belong to a span)."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from pathlib import Path

from colocam.errors import ColocamError
from colocam.video.image_files import images_of, natural_key


class Listing:
    """The pictures of one folder in natural order; made once for the many shots that may lie in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pictures = images_of(folder)
        self._keys = [natural_key(picture.name) for picture in self.pictures]

    def chosen(self, spans: str, where: str) -> tuple[Path, ...]:
        """Return the pictures that ``spans`` names, all of them for an empty text; ``where`` begins an error."""
        if not spans:
            return self.pictures
        found: dict[Path, None] = {}
        for span in (part.strip() for part in spans.split(";")):
            first, dots, last = span.partition("..")
            start, end = self._place(first, where), self._place(last if dots else first, where)
            if end < start:
                raise ColocamError(f"{where}: pictures has the span {span!r}, whose end comes before its start")
            found.update(dict.fromkeys(self.pictures[start : end + 1]))
        return tuple(found)

    def spans(self, chosen: Sequence[Path]) -> str:
        """Say which pictures ``chosen`` are (in natural order), the inverse of :meth:`chosen`."""
        places = [self._place(picture.name, str(self.folder)) for picture in chosen]
        if len(places) == len(self.pictures):
            return ""
        runs: list[list[int]] = []
        for place in places:
            if runs and place == runs[-1][-1] + 1:
                runs[-1][-1] = place
            else:
                runs.append([place, place])
        ends = [(self.pictures[first].name, self.pictures[last].name) for first, last in runs]
        return ";".join(first if first == last else f"{first}..{last}" for first, last in ends)

    def _place(self, name: str, where: str) -> int:
        key = natural_key(name)
        place = bisect_left(self._keys, key)
        if place == bisect_right(self._keys, key):
            raise ColocamError(f"{where}: there is no picture {name!r} in the folder {self.folder}")
        return place
