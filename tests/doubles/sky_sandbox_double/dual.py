"""Entry points with an async sibling on ``.aio``, as the SDK has them."""

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

# The event loop's own pool is a few threads wide, and a command occupies one while it runs.
_THREADS = ThreadPoolExecutor(max_workers=128, thread_name_prefix="sky-double")


class Dual:
    """A function, and the same awaited. As a class attribute it binds like a method.

    The work goes on in its thread when the one who awaits it is cancelled, as a
    server's would.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function

    def __get__(self, instance: Any, owner: Any = None) -> "Dual":
        return self if instance is None else Dual(functools.partial(self._function, instance))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call and wait."""
        return self._function(*args, **kwargs)

    async def aio(self, *args: Any, **kwargs: Any) -> Any:
        """Call without blocking the event loop."""
        call = functools.partial(self._function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(_THREADS, call)
