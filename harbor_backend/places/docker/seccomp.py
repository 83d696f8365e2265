"""The seccomp profile of a sandbox, in the engine's format.

It is stricter than the engine's own in what reaches past a container: no sockets but those of the
internet, of the machine's own programs and of the kernel's network tables; no ``io_uring``.
"""

import errno
import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from harbor_backend.places.docker.system_calls import ALLOWED, REFUSED

_NAMESPACES = 0x7E020000
"""All ``CLONE_NEW…`` flags."""
_PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0x40000, 0xFFFFFFFF)
"""Linux on 64 and 32 bits, UNAME26, a debugger's fixed addresses, and the question which it is."""
_FAMILIES = (1, 2, 10)
"""Of sockets: local ones, and both internets'."""
_ALL_FAMILIES = 46
_KERNEL = 16
_TABLES = (0, 4, 6, 12, 15, 16)
"""Of the kernel: routes, sockets, IPsec, filters, devices, and generic ones."""
_AUDIT = 9

_ARCHITECTURES = {
    "SCMP_ARCH_X86_64": ["SCMP_ARCH_X86", "SCMP_ARCH_X32"],
    "SCMP_ARCH_AARCH64": ["SCMP_ARCH_ARM"],
}


@cache
def seccomp_profile() -> str:
    """The profile, as JSON."""
    flags = [1 << bit for bit in range(32) if _NAMESPACES >> bit & 1]
    rules = [
        _allow(ALLOWED),
        _refuse(REFUSED, errno.EPERM),
        _allow(["clone"], _argument(0, "MASKED_EQ", _NAMESPACES, 0)),
        *(_refuse(["clone"], errno.EPERM, _argument(0, "MASKED_EQ", f, f)) for f in flags),
        # Its flags are in memory, where no filter looks: the C library asks ``clone`` instead.
        _refuse(["clone3"], errno.ENOSYS),
        *(_allow(["personality"], _argument(0, "EQ", value)) for value in _PERSONALITIES),
        *_sockets(),
    ]
    return json.dumps(
        {
            "defaultAction": "SCMP_ACT_ERRNO",
            "archMap": [
                {"architecture": name, "subArchitectures": others}
                for name, others in _ARCHITECTURES.items()
            ],
            "syscalls": rules,
        }
    )


def _sockets() -> list[dict[str, Any]]:
    """Those that are refused are with what a kernel without them says.

    Programs that only would like to write to the audit log take that for no error.
    """
    is_kernel = _argument(0, "EQ", _KERNEL)
    others = set(range(_ALL_FAMILIES)) - {*_FAMILIES, _KERNEL}
    return [
        # The one call of old 32-bit programs for all that sockets do, whose arguments are in
        # memory. It has to be said first: no rule for sockets can be made for it any more.
        _refuse(["socketcall"], errno.ENOSYS),
        *(_allow(["socket"], _argument(0, "EQ", family)) for family in _FAMILIES),
        *(_allow(["socket"], is_kernel, _argument(2, "EQ", table)) for table in _TABLES),
        _refuse(["socket"], errno.EPROTONOSUPPORT, is_kernel, _argument(2, "EQ", _AUDIT)),
        *(_refuse(["socket"], errno.EAFNOSUPPORT, _argument(0, "EQ", f)) for f in sorted(others)),
    ]


def _allow(names: Sequence[str], *arguments: dict[str, Any]) -> dict[str, Any]:
    return {"names": list(names), "action": "SCMP_ACT_ALLOW", "args": list(arguments)}


def _refuse(names: Sequence[str], code: int, *arguments: dict[str, Any]) -> dict[str, Any]:
    action = {"action": "SCMP_ACT_ERRNO", "errnoRet": code}
    return {"names": list(names), **action, "args": list(arguments)}


def _argument(index: int, operator: str, value: int, other: int = 0) -> dict[str, Any]:
    return {"index": index, "op": f"SCMP_CMP_{operator}", "value": value, "valueTwo": other}
