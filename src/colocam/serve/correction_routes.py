"""Routes of corrections: what people said about a film, one more change, undo and redo."""

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from colocam.serve.actions import Change
from colocam.serve.event_store import EventStore
from colocam.serve.film_routes import FilmId
from colocam.serve.library import Library


class NewChange(BaseModel):
    """A change that a page sends.

    Attributes:
        client: name that the page gave it, so that a change that is sent twice is stored once.
        version: version of the film that the page last saw.
        change: what was done.
    """

    model_config = ConfigDict(strict=True, extra="forbid")

    client: Annotated[str, Field(pattern=r"^[0-9A-Za-z-]{8,64}$")]
    version: Annotated[int, Field(ge=0, le=1 << 48)]
    change: Change


def correction_routes(library: Library) -> APIRouter:
    """All routes of corrections."""
    routes = APIRouter(prefix="/api")

    @routes.get("/films/{film}/history")
    def history(film: FilmId) -> dict[str, Any]:
        """The version of a film, its edits that count, and those that were undone."""
        return history_json(library.store, library.film(film).id)

    @routes.post("/films/{film}/history")
    def change(film: FilmId, new: NewChange) -> dict[str, Any]:
        """Store a change; it is on the disk when the answer comes."""
        found = library.film(film)
        event = library.store.append(found.id, new.client, new.version, new.change)
        return {"version": event.version, "saved": event.made}

    return routes


def history_json(store: EventStore, film: str) -> dict[str, Any]:
    """The version of a film and its edits."""
    version, edits = store.history(film)
    return {
        "version": version,
        "done": [edit.model_dump(exclude_none=True) for edit in edits.done],
        "undone": [edit.model_dump(exclude_none=True) for edit in edits.undone],
    }
