"""Routes of learning: begin a lesson, see how far it is; models, the one in use, and what another one changes."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from colocam.serve.changes import most_moved, overlaps
from colocam.serve.exchange_routes import all_corrections, without_paths
from colocam.serve.film_routes import ModelKey, model_of
from colocam.serve.lessons import title_of
from colocam.serve.library import Film, Library
from colocam.serve.model_list import ServedModel

SHOWN = 24
"""Boxes that moved most, of all films."""
SHOWN_OF_FILM = 6


class ModelInUse(BaseModel):
    """The key of the model to use."""

    model_config = ConfigDict(strict=True, extra="forbid")

    key: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]


def lesson_routes(library: Library) -> APIRouter:
    """All routes of learning."""
    routes = APIRouter(prefix="/api")

    def lesson() -> dict[str, Any]:
        status = library.lessons.status()
        path = library.lessons.path_of(status["run"])
        model = next((one.key for one in library.models.all() if status["run"] and one.path == path), "")
        checked = sum(one.key for one in all_corrections(library, library.films()))
        lines = [library.without_paths(line) for line in status["lines"]]
        return {**status, "lines": lines, "model": model, "corrections": checked}

    @routes.get("/lessons")
    def status() -> dict[str, Any]:
        """The last lesson: its state, its output, and how well the new model agrees with held-out corrections."""
        return lesson()

    @routes.post("/lessons", status_code=202)
    def start() -> dict[str, Any]:
        """Begin to learn from all corrections, in the background."""
        with without_paths(library):
            library.lessons.start(all_corrections(library, library.films()))
        return lesson()

    @routes.post("/lessons/quick", status_code=201)
    def quick() -> dict[str, Any]:
        """Choose thresholds and presence by all corrections at once, and use the model that has them."""
        with without_paths(library):
            folder, seconds = library.lessons.quick(all_corrections(library, library.films()))
        model = library.models.add(folder, title_of(folder))
        library.use(model)
        return {"model": model.key, "title": model.title, "seconds": round(seconds, 3)}

    @routes.get("/models")
    def models() -> dict[str, Any]:
        """All models, how many films each has seen, and the one in use."""
        films = [film for film in library.films() if film.index is not None]
        listed = [
            {
                "key": one.key,
                "title": one.title,
                "seen": sum(one.key in film.found for film in films),
                "problem": library.problems.get(one.key, ""),
            }
            for one in library.models.all()
        ]
        return {"active": library.active.key, "first": library.first.key, "films": len(films), "models": listed}

    @routes.post("/models")
    def use(new: ModelInUse) -> dict[str, Any]:
        """Use another model."""
        library.use(library.models.get(new.key))
        return models()

    @routes.get("/changes")
    def changes(after: Annotated[str, Query(pattern="^[0-9a-f]{16}$")], before: ModelKey = None) -> dict[str, Any]:
        """The boxes that moved most from one model, by default that in use, to another."""
        old, new = model_of(library, before), library.models.get(after)
        library.look(new)
        films = [film for film in library.films() if film.index is not None]
        compared = [film for film in films if old.key in film.found and new.key in film.found]
        moved = [one for film in compared for one in _moved(film, old, new)]
        moved.sort(key=lambda one: one["overlap"])
        return {"films": len(films), "compared": len(compared), "moved": moved[:SHOWN]}

    return routes


def _moved(film: Film, old: ServedModel, new: ServedModel) -> list[dict[str, Any]]:
    before, after = film.found[old.key], film.found[new.key]
    return [
        {
            "film": film.id,
            "name": film.name,
            "frame": int(before.rows.frame[one.position]),
            "overlap": round(one.overlap, 4),
            "before": _corners(before.rows.box[one.position].tolist()),
            "after": _corners(after.rows.box[one.position].tolist()),
        }
        for one in most_moved(overlaps(before, after), SHOWN_OF_FILM)
    ]


def _corners(box: list[float]) -> list[float] | None:
    return None if box[0] != box[0] else [round(value, 2) for value in box]
