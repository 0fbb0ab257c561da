"""Write the files of a study: tables (Markdown, CSV), figures (SVG, PNG), and an HTML page."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from jinja2 import ChoiceLoader, FileSystemLoader
from markupsafe import Markup

from colocam.report.page import environment
from colocam.utils.files import atomic_path, write_json, write_text
from lab.study.figures import draw
from lab.study.recipe import Findings, Results, Study, of_paper
from lab.study.tables import Measured, Table, cells_of, markdown, to_csv
from lab.study.workplace import Lab


def conditions_of(study: Study, lab: Lab, seeds: int, results: Results) -> dict[str, str]:
    """How a study was run: all that is needed to repeat it, with dates and devices of its cells."""
    cells = study.cells(lab)
    wanted = sum(seeds if cell.seeded else 1 for cell in cells if cell not in results.reasons)
    typed = shlex.join(["colocam", *sys.argv[1:]]) if sys.argv[1:2] == ["study"] else f"run_study({study.name!r}, …)"
    file = [] if lab.config_file is None else [lab.config_file.name]
    changes = " ".join([*file, *(f"--set {change}" for change in lab.overrides)])
    found = [result for cell in results.found for result in results.of(cell)]
    dates, devices, versions = (
        {str(result[key]) for result in found if key in result}  # cells of earlier versions have no entry for torch
        for key in ("date", "device", "torch")
    )
    last = seeds - 1 if any(cell.seeded for cell in cells) else 0
    return {
        "command": typed,
        "date": " to ".join(sorted({min(dates), max(dates)})) if dates else "–",
        "seeds": f"0–{last}" if last else "0",
        "data": lab.data.name + (" (SMOKE TEST: the numbers have no meaning)" if lab.smoke else ""),
        "configuration": f"preset {lab.preset} {changes}".strip(),
        "epochs_chosen_by": "boxes of validation videos" if lab.val_boxes else "tags and maps alone",
        "device": f"{' and '.join(sorted(devices)) or '–'}, torch {' and '.join(sorted(versions)) or '–'}",
        "cells": f"{len(found)} of {wanted}" + ("" if len(found) == wanted else " (UNFINISHED)"),
    }


def write_study(study: Study, lab: Lab, seeds: int, results: Results) -> Path:
    """Write all files of a study into its folder and return it."""
    folder, findings, paper = lab.out / study.name, study.read(lab, results), of_paper(study.name)
    conditions = conditions_of(study, lab, seeds, results)
    remarks = [*findings.notes, *dict.fromkeys(results.reasons.values()), *study.notes]
    drawings = [draw(drawing) for drawing in findings.drawings]
    for number, (svg, png) in enumerate(drawings):
        stem = "figure" if number == 0 else f"figure-{number + 1}"
        write_text(folder / f"{stem}.svg", svg)
        with atomic_path(folder / f"{stem}.png") as temporary:
            temporary.write_bytes(png)
    for table in findings.tables:
        write_text(folder / f"{table.name}.csv", to_csv(table))
    write_text(folder / "README.md", _markdown(study, findings, conditions, paper, remarks))
    write_json(folder / "study.json", {**conditions, "tables": {t.name: _plain(t) for t in findings.tables}})
    pages = environment("report")
    assert pages.loader is not None
    template = pages.overlay(loader=ChoiceLoader([FileSystemLoader(Path(__file__).parent), pages.loader]))
    page = template.get_template("study_page.html").render(
        study=study,
        paper=paper,
        conditions={key.replace("_", " "): value for key, value in conditions.items()},
        tables=[(table, cells_of(table)) for table in findings.tables],
        # Groups have their images in the page. The SVG comes from matplotlib, which escapes text.
        drawings=[Markup(svg) for svg, _ in drawings] if not findings.groups else [],  # noqa: S704
        notes=remarks,
        groups=findings.groups,
    )
    write_text(folder / "index.html", page)
    return folder


def _markdown(study: Study, findings: Findings, conditions: dict[str, str], paper: str, remarks: Sequence[str]) -> str:
    stems = ["figure", *(f"figure-{n}" for n in range(2, len(findings.drawings) + 1))]
    told = ", ".join(f"{key.replace('_', ' ')}: {value}" for key, value in conditions.items() if key != "command")
    parts = [
        f"# {study.name}: {study.title}",
        paper,
        f"```\n{conditions['command']}\n```",
        f"{told}.",
        *(markdown(table).rstrip() for table in findings.tables),
        "\n".join(f"![{study.title}]({stem}.svg)" for stem in stems),
        "\n".join(f"- {remark}" for remark in remarks),
    ]
    return "\n\n".join(parts) + "\n"


def _plain(table: Table) -> list[dict[str, object]]:
    """Rows with the value of each seed."""
    return [
        {
            column: list(entry.values) if isinstance(entry, Measured) else entry
            for column, entry in zip(table.columns, row, strict=True)
        }
        for row in table.rows
    ]
