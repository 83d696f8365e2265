"""A gateway and a model server, both real, for each test that asks."""

from collections.abc import AsyncIterator

import pytest

from osmosis_ai.gateway import Gateway
from tests.gateway.model_server import ModelServer, model_server


@pytest.fixture
async def gateway(anyio_backend: str) -> AsyncIterator[Gateway]:
    async with Gateway() as gateway:
        yield gateway


@pytest.fixture
async def model(anyio_backend: str) -> AsyncIterator[ModelServer]:
    async with model_server() as server:
        yield server
