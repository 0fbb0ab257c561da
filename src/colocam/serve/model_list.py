"""The models of a server: that of the command, those beside it, and those that lessons made."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from colocam.errors import ColocamError
from colocam.inference.localizer import Localizer
from colocam.utils.digests import FileDigests

LOADED = 2
"""Models that stay in memory."""


class UnknownModelError(ColocamError):
    """There is no model of this key."""


class ServedModel(NamedTuple):
    """A model.

    Attributes:
        key: 16 hexadecimal digits, a digest of its files.
        title: as the page shows it.
        path: run folder or ONNX file.
    """

    key: str
    title: str
    path: Path


class ModelList:
    """Models in the order in which they were added; may be called from any thread.

    Args:
        load: opens a run folder or an ONNX file.
        memory: file that digests are remembered in.
    """

    def __init__(self, load: Callable[[Path], Localizer], memory: Path) -> None:
        self._load = load
        self._digests = FileDigests(memory)
        self._models: dict[str, ServedModel] = {}
        self._loaded: OrderedDict[str, Localizer] = OrderedDict()
        self._lock, self._load_lock = threading.Lock(), threading.Lock()

    def add(self, path: Path, title: str) -> ServedModel:
        """Add a model; one with the same files is there already."""
        files = sorted(path.glob("model.*")) if path.is_dir() else [path]
        with self._lock:
            try:
                digests = [self._digests.of_file(file) for file in files]
            except OSError as error:
                raise ColocamError(f"cannot read {path}: {error.strerror}") from error
            self._digests.save()
            key = hashlib.blake2b("".join(digests).encode(), digest_size=8).hexdigest()
            return self._models.setdefault(key, ServedModel(key, title, path))

    def all(self) -> list[ServedModel]:
        """All models."""
        with self._lock:
            return list(self._models.values())

    def get(self, key: str) -> ServedModel:
        """The model of a key."""
        with self._lock:
            found = self._models.get(key)
        if found is None:
            raise UnknownModelError("there is no model of this key: open the page again")
        return found

    def localizer(self, model: ServedModel) -> Localizer:
        """The opened model; the last ones are kept open."""
        with self._load_lock:
            if model.key not in self._loaded:
                self._loaded[model.key] = self._load(model.path)
            self._loaded.move_to_end(model.key)
            while len(self._loaded) > LOADED:
                self._loaded.popitem(last=False)
            return self._loaded[model.key]
