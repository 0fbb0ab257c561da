"""Requests made from its own description: no answer is an error of the server, every refusal is a sentence."""

import json

import pytest
from hypothesis import HealthCheck, Phase, given, settings

schemathesis = pytest.importorskip("schemathesis")


@pytest.fixture
def schema(served):
    described = served.client.get("/api/openapi.json").json()
    return schemathesis.openapi.from_dict(described)


def test_no_request_breaks_the_server(schema, served):
    """Also what the description forbids, for one film that exists and one that does not."""
    answers = []

    def call(case):
        for film in (served.film, "0" * 24):
            path = case.formatted_path
            for name, value in (case.path_parameters or {}).items():
                if name == "film":
                    path = path.replace(str(value), film)
            body = case.body if isinstance(case.body, dict | list) else None
            query = {name: str(value) for name, value in (case.query or {}).items()}
            content = None if body is None else json.dumps(body, default=str).encode()
            if case.method == "DELETE":
                continue
            answer = served.client.request(case.method, path, params=query, content=content)
            answers.append(answer.status_code)
            assert answer.status_code < 500, (case.method, path, query, body, answer.text)
            if answer.status_code >= 400 and answer.status_code != 416:
                assert answer.json()["error"], (case.method, path)

    strategy = schema.as_strategy()

    @settings(max_examples=60, phases=[Phase.generate], suppress_health_check=list(HealthCheck), deadline=None)
    @given(strategy)
    def run(case):
        call(case)

    run()
    assert {200, 404, 422} <= set(answers)
