"""Refuse by default: only requests of our own page, to our own address, and only with the token.

Every refusal is a status and a sentence that the page shows.

- ``Host`` must be one of ours on every route, so that a foreign name that leads to this machine (DNS rebinding) fails.
- ``Sec-Fetch-Site`` and ``Origin`` must be those of our page, so that a foreign page cannot call us.
- Everything needs the token as a cookie, which the printed address sets: other people may use this machine, too.
- Writing also needs the token in the header ``X-Colocam-Token``, which a foreign page cannot set.
- A body has at most :data:`MOST_JSON` bytes, except those of files: the server parses it between all other answers.
"""

import re
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from colocam.errors import ColocamError, machine_fault
from colocam.video.input import DecoderEndedError

TOKEN_HEADER = "x-colocam-token"  # noqa: S105 - the name of a header
COOKIE = "colocam-"
"""Begin of the cookie's name; the port follows, since a browser sends cookies to all ports of a machine."""
COOKIE_SECONDS = 30 * 24 * 3600
FILES = re.compile("/api/videos|/api/videos/[^/]+/labels")
"""Paths whose bodies are files, with limits of their own."""
MOST_JSON = 8 << 20
"""Bytes of any other body: the boxes of 200,000 frames that are accepted at once."""
SAFE_METHODS = frozenset({"GET", "HEAD"})
METHODS = SAFE_METHODS | {"POST", "DELETE"}
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self'; "
        "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}


class RefusalError(ColocamError):
    """An error that the page shows.

    Attributes:
        status: of the answer.
        more: what the answer states beside the sentence.
    """

    def __init__(self, status: int, sentence: str, **more: object) -> None:
        super().__init__(sentence)
        self.status, self.more = status, more


class Guard:
    """ASGI middleware in front of all routes.

    Args:
        app: what answers a request that is let in.
        hosts: values of ``Host`` that are ours, with the port, in lower case.
        token: needed for everything.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str], token: str) -> None:
        self._app, self._hosts, self._token = app, hosts, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        if scope["type"] != "http":
            return  # no route uses a web socket

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        limited = receive if FILES.fullmatch(scope["path"]) else _limited(receive)
        answer = self._answer(Request(scope)) or self._app
        # HEAD is answered like GET; the server, which knows what was asked, leaves the body out.
        scope = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        await answer(scope, limited, send_with_headers)

    def _answer(self, request: Request) -> Response | None:
        """A refusal, or the page's first answer with the cookie; None: go on."""
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return refusal(421, "this server answers only to the address that it printed")
        if request.method not in METHODS:
            return refusal(405, f"the method {request.method[:20]} is not used here")
        if _is_foreign(request):
            return refusal(403, "requests of other pages are refused")
        return self._key(request)

    def _key(self, request: Request) -> Response | None:
        cookie = COOKIE + request.headers["host"].rpartition(":")[2]
        if request.scope["path"] == "/" and self._is_token(request.query_params.get("token", "")):
            answer = RedirectResponse("/", 303)
            # A strict one would not be sent where a link in another program or page has led here.
            answer.set_cookie(cookie, self._token, httponly=True, samesite="lax", max_age=COOKIE_SECONDS)
            return answer
        if not self._is_token(request.cookies.get(cookie, "")):
            return refusal(401, "open the address with the token, which 'colocam serve' printed in its terminal")
        if request.method not in SAFE_METHODS and not self._is_token(request.headers.get(TOKEN_HEADER, "")):
            return refusal(403, "writing needs the token of the page: reload the page")
        return None

    def _is_token(self, text: str) -> bool:
        return secrets.compare_digest(text.encode("utf-8", "replace"), self._token.encode())


def _is_foreign(request: Request) -> bool:
    """Whether another page has sent a request."""
    headers = request.headers
    # Opening the page from a bookmark or a link is a navigation; it reads nothing for a foreign page.
    navigates = headers.get("sec-fetch-mode") == "navigate" and request.method == "GET" and request.scope["path"] == "/"
    if headers.get("sec-fetch-site") not in {None, "same-origin", "none"} and not navigates:
        return True
    origin = headers.get("origin")
    return origin is not None and origin.lower() != f"http://{headers['host'].lower()}"


def _limited(receive: Receive) -> Receive:
    """Receive a body up to :data:`MOST_JSON` bytes, whatever length it states."""
    size = 0

    async def limited() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > MOST_JSON:
            raise HTTPException(413, f"the request is larger than {MOST_JSON >> 20} MiB: correct fewer frames at once")
        return message

    return limited


def refusal(status: int, sentence: str, **more: object) -> Response:
    """An error as the page gets it."""
    return JSONResponse({"error": sentence, **more}, status)


def add_refusals(app: FastAPI, without_paths: Callable[[str], str]) -> None:
    """Answer every error as ``{"error": sentence}``; ``without_paths`` takes paths of this machine out of sentences."""

    @app.exception_handler(ColocamError)
    def refuse(_request: Request, error: ColocamError) -> Response:
        status, more = (error.status, error.more) if isinstance(error, RefusalError) else (422, {})
        return refusal(status, without_paths(str(error)), **more)

    @app.exception_handler(RequestValidationError)
    def invalid(_request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return refusal(422, f"the request is not valid: {where}: {first['msg']}")

    @app.exception_handler(HTTPException)
    def http(_request: Request, error: HTTPException) -> Response:
        return refusal(error.status_code, str(error.detail))

    @app.exception_handler(OSError)
    def system(_request: Request, error: OSError) -> Response:
        return refusal(507, f"the server cannot write or read a file: {error.strerror}")


def blame(error: Exception, name: str) -> tuple[str, Literal["video", "machine"]]:
    """Why a video failed, in one sentence, and whose fault that is: of the machine, a later attempt may succeed."""
    if isinstance(error, DecoderEndedError):
        return str(error), "machine"
    lacked = machine_fault(error) or (str(error) if isinstance(error, RefusalError) and error.status == 507 else "")
    if lacked:
        return f"{lacked}, then retry: {name} is not to blame", "machine"
    if isinstance(error, (ColocamError, OSError)):
        return str(error), "video"
    return f"cannot read {name}: {type(error).__name__}: {error}", "video"


def named_paths(text: str, named: Mapping[str, str], root: Path) -> str:
    """A sentence with names in place of paths of this machine, and without the folders of files below ``root``."""
    for path, name in sorted(named.items(), key=lambda item: len(item[0]), reverse=True):
        text = text.replace(path, name)
    for folder in (root.resolve(), root):
        text = re.sub(rf"{re.escape(str(folder))}/(?:[^\s/]+/)*", "", text)
    return text
