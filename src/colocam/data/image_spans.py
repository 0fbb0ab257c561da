"""Name some images of a folder in one cell of a table: ``a.jpg;c.jpg..f.jpg`` (a span includes both ends)."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from pathlib import Path

from colocam.errors import ColocamError
from colocam.video.images import images_of, natural_key


class Listing:
    """The images of one folder in natural order; read once for all shots in the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.images = images_of(folder)
        self._keys = [natural_key(image.name) for image in self.images]

    def chosen(self, spans: str, where: str) -> tuple[Path, ...]:
        """The images that ``spans`` names, all of them for an empty text; ``where`` begins an error."""
        if not spans:
            return self.images
        found: dict[Path, None] = {}
        for span in (part.strip() for part in spans.split(";")):
            first, dots, last = span.partition("..")
            start, end = self._index(first, where), self._index(last if dots else first, where)
            if end < start:
                raise ColocamError(f"{where}: the span {span!r} in pictures ends before it starts")
            found.update(dict.fromkeys(self.images[start : end + 1]))
        return tuple(found)

    def spans(self, chosen: Sequence[Path]) -> str:
        """Text that names the images ``chosen`` (in natural order); the inverse of :meth:`chosen`."""
        indices = [self._index(image.name, str(self.folder)) for image in chosen]
        if len(indices) == len(self.images):
            return ""
        runs: list[list[int]] = []
        for index in indices:
            if runs and index == runs[-1][-1] + 1:
                runs[-1][-1] = index
            else:
                runs.append([index, index])
        ends = [(self.images[first].name, self.images[last].name) for first, last in runs]
        return ";".join(first if first == last else f"{first}..{last}" for first, last in ends)

    def _index(self, name: str, where: str) -> int:
        key = natural_key(name)
        index = bisect_left(self._keys, key)
        if index == bisect_right(self._keys, key):
            raise ColocamError(f"{where}: there is no image {name!r} in the folder {self.folder}")
        return index
