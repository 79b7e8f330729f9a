"""Fixtures every test may ask for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is no failed property: speed has its place in benchmarks/.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as the command line does; before torch


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the checkout; tests that need it skip where it is absent."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"needs the real data, which is not at {folder}")
    return folder
