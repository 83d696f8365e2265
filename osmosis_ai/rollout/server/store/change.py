"""The base of every change to the store."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

from sqlalchemy.ext.asyncio import AsyncConnection


class Change[R](ABC):
    """One change, as a value; ``R`` is what its submitter gets back."""

    @classmethod
    @abstractmethod
    async def apply(cls, connection: AsyncConnection, changes: Sequence[Self]) -> Sequence[R]:
        """Write many changes of this kind with few statements; returns one result for each."""
