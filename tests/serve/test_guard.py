"""Requests that are not of our page are refused: other hosts, other origins, no token."""

import re

import pytest
from starlette.testclient import TestClient

from tests.helpers.served_library import HOST, serving

READS = ["/", "/page/main.js", "/api/videos", "/api/openapi.json", "/api/formats", "/nothing"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("guard") / "page") as one:
        yield one


@pytest.mark.parametrize("path", READS)
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:1", "127.0.0.1", "localhost.evil.example:8620", ""])
def test_another_host_is_refused_on_every_route(server, path, host):
    assert server.client.get(path, headers={"host": host}).status_code == 421


@pytest.mark.parametrize("path", ["/page/main.js", "/api/videos", "/api/openapi.json"])
@pytest.mark.parametrize(
    "headers",
    [{"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"origin": "null"}]
    + [{"origin": f"{scheme}://{HOST}"} for scheme in ("chrome-extension", "moz-extension", "https", "file")],
)
def test_a_foreign_page_reads_nothing(server, path, headers):
    assert server.client.get(path, headers=headers).status_code == 403


def test_the_page_may_be_opened_from_a_link(server):
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert server.client.get("/", headers=headers).status_code == 200
    assert server.client.get("/api/videos", headers=headers).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"x-colocam-token": ""},
        {"x-colocam-token": "wrong"},
        {"x-colocam-token": "é"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
    ],
)
def test_writing_needs_the_token_and_our_origin(server, headers):
    encoded = {name: value.encode("latin-1") for name, value in headers.items()}
    assert server.client.post("/api/exports", json={"to": "csv"}, headers=encoded).status_code == 403
    assert server.client.delete(f"/api/videos/{24 * '0'}", headers=encoded).status_code == 403


def test_writing_with_the_token_is_answered(server):
    answer = server.client.post("/api/exports", json={"to": "csv"}, headers={"origin": f"http://{HOST}"})
    assert answer.status_code == 404
    assert "no video is ready" in answer.json()["error"]


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(server, method):
    assert server.client.request(method, "/api/videos").status_code == 405


@pytest.mark.parametrize("path", READS)
def test_head_is_answered_like_get(server, path):
    wanted, found = server.client.get(path), server.client.head(path)
    assert found.status_code == wanted.status_code
    assert found.headers["content-type"] == wanted.headers["content-type"]


@pytest.mark.parametrize("value", ["yes", "true", 1])
def test_only_true_is_true(server, value):
    answer = server.client.post("/api/settings", json={"instances": value})
    assert answer.status_code == 422


def test_no_answer_may_run_foreign_or_inline_scripts(server):
    for path in (*READS, "/api/videos/x"):
        headers = server.client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"


def test_everything_needs_the_token_also_on_this_machine(server):
    client, token = TestClient(server.client.app, base_url=f"http://{HOST}"), server.workspace.token
    for path in READS:
        assert client.get(path).status_code == 401
    assert client.get("/?token=wrong").status_code == 401
    assert client.get("/?token=", headers={"cookie": "colocam-8620="}).status_code == 401
    assert client.get("/", headers={"cookie": f"colocam-8621={token}"}).status_code == 401
    assert client.post("/api/exports", json={"to": "csv"}, headers={"x-colocam-token": token}).status_code == 401
    assert token not in client.get("/").text
    opened = client.get(f"/?token={token}", follow_redirects=False)
    assert opened.status_code == 303
    assert "HttpOnly" in opened.headers["set-cookie"]
    assert "SameSite=lax" in opened.headers["set-cookie"]
    assert client.get("/api/videos").status_code == 200
    assert client.post("/api/exports", json={"to": "csv"}).status_code == 403


def test_files_outside_the_page_are_not_served(server):
    opened = server.client.get("/")
    assert opened.headers["cache-control"] == "no-store"  # it holds the token, and names the files of this version
    page = re.search(r'src="(/page/[0-9a-f]{16})/main.js"', opened.text)[1]
    script = server.client.get(f"{page}/main.js")
    assert script.status_code == 200
    assert "immutable" in script.headers["cache-control"]
    for name in ("../app.py", "%2e%2e/app.py", "index.html", "..%2fapp.py", "/etc/passwd", "main.js/..", ""):
        assert server.client.get(f"{page}/{name}").status_code == 404, name
