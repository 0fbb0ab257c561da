"""Merge nested settings.

Tests: tests/config/test_config.py.
"""

from collections.abc import Mapping
from typing import Any


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with the values of ``changes``; nested mappings are merged key by key."""
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged
