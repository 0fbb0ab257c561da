"""Requests made from its own description: no answer is an error of the server, every refusal is a sentence."""

import json

import pytest
from hypothesis import HealthCheck, Phase, given, settings

schemathesis = pytest.importorskip("schemathesis")


def test_no_request_breaks_the_server(served):
    """Also what the description forbids, for one video that exists and one that does not."""
    described, answers = served.client.get("/api/openapi.json").json(), []

    @settings(max_examples=60, phases=[Phase.generate], suppress_health_check=list(HealthCheck), deadline=None)
    @given(schemathesis.openapi.from_dict(described).as_strategy())
    def ask(case):
        named = (case.path_parameters or {}).get("video")
        body = json.dumps(case.body, default=str).encode() if isinstance(case.body, dict | list) else None
        query = {name: str(value) for name, value in (case.query or {}).items()}
        for video in (served.video, "0" * 24) if case.method != "DELETE" else ():
            path = case.formatted_path if named is None else case.formatted_path.replace(str(named), video)
            answer = served.client.request(case.method, path, params=query, content=body)
            answers.append(answer.status_code)
            assert answer.status_code < 500, (case.method, path, query, body, answer.text)
            if answer.status_code >= 400 and answer.status_code != 416:
                assert answer.json()["error"], (case.method, path)

    ask()
    assert {200, 404, 422} <= set(answers)
