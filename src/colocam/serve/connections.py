"""Connections of the server: one that sends no whole request is closed, so that it keeps nobody out.

Uvicorn waits for ever for the headers of a request, and its ``limit_concurrency`` refuses those who come last, whoever
holds the places. Without a limit the process runs out of open files.
"""

import asyncio
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 200
"""Open connections. Beyond them, the one that has waited longest for a request gives its place to a new one."""
BACKLOG = 128
"""Connections that are accepted before the limit is looked at; with :data:`MOST` below the 1,024 open files of most
systems."""
HEADER_SECONDS = 10.0
"""From the first byte of a request, or the start of a connection, to the end of the request's headers."""


class Connection(H11Protocol):
    """A connection with a limit of time for headers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - uvicorn's
        super().__init__(*args, **kwargs)
        self._since = self.loop.time()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def _waits(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Take a place, or that of another connection."""
        super().connection_made(transport)
        self.loop.call_later(0, self._make_room)  # after requests that have already come were read
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next request; uvicorn closes a connection that stays silent."""
        self._since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the limit of time."""
        super().connection_lost(exc)
        self._stop()

    def _make_room(self) -> None:
        waiting = [one for one in self.connections if isinstance(one, Connection) and one._waits]  # noqa: SLF001
        if waiting and len(self.connections) > MOST:
            oldest = min(waiting, key=lambda one: one._since)  # noqa: SLF001
            self.connections.discard(oldest)
            oldest.transport.abort()

    def _watch(self) -> None:
        if not self._waits:
            self._stop()
        elif self._timer is None:
            self._timer = self.loop.call_later(HEADER_SECONDS, self._close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        self._timer = None
        if self._waits:
            self.transport.abort()


def web_server(app: ASGIApp) -> uvicorn.Server:
    """A server of an application. It reports its own errors alone: anybody can cause a warning."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            log_level="error",
            server_header=False,
            backlog=BACKLOG,
        )
    )
