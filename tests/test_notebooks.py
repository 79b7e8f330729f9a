"""`notebooks/`: every notebook runs from top to bottom."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)


def test_in_the_notebook_the_prior_saves_silent_groups_early(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    names: dict[str, dict[str, list[float]]] = {}
    for cell in json.loads(NOTEBOOKS[0].read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    early = {name: values[0] for name, values in names["shares"].items()}
    assert early["thinkprior"] < early["online-np"] < early["uniform"]
