"""Starting the runner as a fork of this process, which then has it loaded already.

Loading it costs more than all the rest of a phase. Only the runtime's own
modules are loaded here, nothing of the bundle: user code never runs in the
sandbox's first process.
"""

import gc
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import NoReturn

from .signals import as_interpreter

RUNNER = "osmosis_ai.rollout.container.runner"

_CONTAINER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_SITE_PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(_CONTAINER)))


def load() -> bool:
    """Import the runner, once; returns whether it can be forked."""
    if RUNNER in sys.modules:
        return True
    before = list(sys.path)
    gc.disable()
    sys.path.append(_SITE_PACKAGES)
    try:
        __import__(RUNNER)
    except Exception:  # started by itself, it says on its own output what is wrong
        return False
    finally:
        sys.path[:] = before
        gc.freeze()  # a collection in a fork would copy every page that it looks at
        gc.enable()
    return True


def run(arguments: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Be the runner, as if its interpreter had been started for it; for a fork only."""
    code = 1
    try:
        os.environ.clear()
        os.environ.update(environment)
        as_interpreter()
        _forget_supervisor()
        sys.argv = [RUNNER, *arguments]
        sys.modules[RUNNER].main(list(arguments))
        code = 0
    except SystemExit as exc:
        code = exc.code if isinstance(exc.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


def _forget_supervisor() -> None:
    """Leave to user code the names that it would have in an interpreter of its own."""
    import site

    sys.path.remove(_CONTAINER)
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{__package__}.")]:
        del sys.modules[name]
    site.main()
