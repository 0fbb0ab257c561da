"""Routes of learning: begin a lesson, see how far it is."""

from typing import Any

from fastapi import APIRouter

from colocam.serve.exchange_routes import all_corrections
from colocam.serve.library import Library


def lesson_routes(library: Library) -> APIRouter:
    """All routes of learning."""
    routes = APIRouter(prefix="/api")

    @routes.get("/lessons")
    def status() -> dict[str, Any]:
        """The last lesson: its state and its output."""
        return library.lessons.status()

    @routes.post("/lessons", status_code=202)
    def start() -> dict[str, Any]:
        """Begin to learn from all corrections, in the background."""
        library.lessons.start(all_corrections(library, library.films()))
        return library.lessons.status()

    return routes
