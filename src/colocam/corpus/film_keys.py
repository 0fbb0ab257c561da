"""The key of a part: a digest of the content of the film, of the model and of the options."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from colocam.corpus.films import Film
from colocam.utils.digests import FileDigests
from colocam.video.images import images_of

FORMAT = 2
"""Changes when the same film, model and options give other rows."""


def model_key(run: Path, settings: dict[str, Any], segmenter: Sequence[Path] = ()) -> str:
    """Digest of the content of model and segmenter and of the settings, without paths and times."""
    digests = FileDigests()
    model = sorted(run.glob("model.*")) if run.is_dir() else [run]
    contents = [[digests.of_file(path) for path in files] for files in (model, segmenter)]
    text = json.dumps([FORMAT, contents, settings], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def film_key(model: str, film: Film, digest: str) -> str:
    """Key of the part of a film whose content has a digest; ``model`` is a :func:`model_key`."""
    text = json.dumps([model, digest, film.tag])
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def film_digest(film: Film, digests: FileDigests) -> str:
    """Digest of the content of a film; all of it is read, unless its digest is remembered."""
    return digests.of_files(images_of(film.path)) if film.path.is_dir() else digests.of_file(film.path)


def quick_digest(film: Film, digests: FileDigests) -> str | None:
    """Digest of the content of a film; None where it is not remembered, and too long to read it now."""
    try:
        return digests.quick(film.path)
    except IsADirectoryError:
        return digests.quick_of_files(images_of(film.path))
