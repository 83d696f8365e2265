"""Fixtures that every test package shares."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Harbor and the agent frameworks are asyncio code, so the tests run there."""
    return "asyncio"
