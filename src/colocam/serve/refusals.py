"""Refusals of the server: a status and a sentence that the page shows."""

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from colocam.errors import ColocamError
from colocam.serve.event_store import ConflictError, NothingToUndoError, StoreError, UnknownVersionError
from colocam.serve.library import UnknownFilmError
from colocam.serve.model_list import UnknownModelError


class RefusalError(ColocamError):
    """An error that the page shows, with the status of the answer."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class NotReadyError(RefusalError):
    """What was asked for is still being computed."""

    def __init__(self, sentence: str) -> None:
        super().__init__(404, sentence)


def add_refusals(app: FastAPI) -> None:
    """Answer every error as ``{"error": sentence}``."""

    @app.exception_handler(ColocamError)
    def refuse(_request: Request, error: ColocamError) -> JSONResponse:
        if isinstance(error, RefusalError):
            status = error.status
        elif isinstance(error, UnknownFilmError | UnknownModelError | UnknownVersionError):
            status = 404
        elif isinstance(error, StoreError):
            status = 507
        else:
            status = 409 if isinstance(error, NothingToUndoError | ConflictError) else 422
        return _answer(status, str(error), _since(error))

    @app.exception_handler(RequestValidationError)
    def invalid(_request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return _answer(422, f"the request is not valid: {where}: {first['msg']}")

    @app.exception_handler(HTTPException)
    def http(_request: Request, error: HTTPException) -> JSONResponse:
        return _answer(error.status_code, str(error.detail))

    @app.exception_handler(OSError)
    def system(_request: Request, error: OSError) -> JSONResponse:
        return _answer(507, f"the server cannot write or read a file: {error.strerror}")


def _since(error: ColocamError) -> dict[str, Any]:
    """What another page stored, for a conflict."""
    if not isinstance(error, ConflictError):
        return {}
    return {
        "conflict": [
            {"version": one.version, "made": one.made, "change": one.change.model_dump(exclude_none=True)}
            for one in error.events
        ]
    }


def _answer(status: int, sentence: str, more: dict[str, Any] | None = None) -> JSONResponse:
    return JSONResponse({"error": sentence, **(more or {})}, status)
