"""Localisation tables of the label formats' tests, for the adapters."""

import pytest

from label_scenes import row, write_table


@pytest.fixture(scope="session", name="write_table")
def write_table_fixture():
    return write_table


@pytest.fixture(scope="session", name="row")
def row_fixture():
    return row
