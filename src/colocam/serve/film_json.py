"""Films as the page gets them: never with a path of this machine."""

from math import isnan
from typing import Any

import numpy as np

from colocam.serve.film_results import DOUBTFUL, MAP_SIDE
from colocam.serve.library import Film, Library
from colocam.serve.marks import CHECKED, INTERPOLATED, marks_of
from colocam.serve.model_list import ServedModel
from colocam.types import Float64Array


def film_summary(library: Library, film: Film) -> dict[str, Any]:
    """What the library shows of a film."""
    summary: dict[str, Any] = {"id": film.id, "name": film.name, "tag": film.tag, "state": film.state}
    summary |= {"done": round(film.done, 3), "problem": film.problem}
    if film.index is not None:
        source = film.index.source
        seconds = float(film.index.pts[-1] - film.index.pts[0]) + 1 / float(source.fps)
        summary |= {"frames": len(film.index.frames), "seconds": round(seconds, 3)}
        summary |= {"width": source.width, "height": source.height}
    if film.results is not None and film.index is not None:
        rows = film.results.rows
        found = max(set(rows.tag), key=rows.tag.count)
        _, history = library.store.history(film.id)
        marks = marks_of(history.actions, film.index.frames, film.index.cuts, film.results.absent)
        checked = np.isin(marks.state, CHECKED)
        summary |= {
            "found": found,
            "doubtful": round(float(((film.results.doubt >= DOUBTFUL) & ~checked).mean()), 4),
            "checked": round(float(checked.mean()), 4),
            "interpolated": round(float(np.isin(marks.state, INTERPOLATED).mean()), 4),
        }
    return summary


def film_detail(library: Library, film: Film, model: ServedModel) -> dict[str, Any]:
    """A film, its frames and what a model found in them, as columns."""
    if film.index is None:
        return {**film_summary(library, film), "classes": library.tags}
    index = film.index
    detail = {
        **film_summary(library, film),
        "fps": float(index.source.fps),
        "classes": library.tags,
        "frame": index.frames.tolist(),
        "pts": index.pts.tolist(),
        "proxy": index.proxy.tolist(),
        "cuts": np.flatnonzero(index.cuts).tolist(),
        "map_side": MAP_SIDE,
        "doubtful_from": DOUBTFUL,
        "model": model.key,
    }
    if (found := film.found.get(model.key)) is not None:
        rows, position = found.rows, {int(frame): at for at, frame in enumerate(index.frames)}
        detail["results"] = {
            "tag": rows.tag,
            "probability": _numbers(rows.probability),
            "box": [None if isnan(box[0]) else [round(v, 3) for v in box] for box in rows.box.tolist()],
            "score": _numbers(rows.score),
            "presence": _numbers(rows.presence),
            "doubt": _numbers(found.doubt),
            "absent": np.flatnonzero(found.absent).tolist(),
            "queue": [[position[frame], reason] for frame, reason in found.queue],
        }
    return detail


def _numbers(values: Float64Array) -> list[float | None]:
    return [None if isnan(value) else round(value, 4) for value in values.tolist()]
