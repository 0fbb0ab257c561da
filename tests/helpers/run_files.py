"""What a run folder holds."""

import json


def learned_files(run):
    """Name → bytes of everything that was learned; the rest says when and where."""
    others = {"data.json", "environment.json"}
    found = {str(path.relative_to(run)): path for path in sorted(run.rglob("*")) if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if path.name not in others}


def journal(run):
    """The lines of metrics.jsonl."""
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
