"""What an agent with root tries first, as functions that run inside a sandbox.

This file is the program that runs there: it imports the standard library alone. Each probe
returns what it got hold of, or ``None``; a refusal by the kernel is an ``OSError``. None changes
anything that outlives its container.
"""

import ctypes
import errno
import json
import mmap
import os
import platform
import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path

type Probe = Callable[[], str | None]

PROBES: dict[str, Probe] = {}
_SECONDS = 10

_libc = ctypes.CDLL(None, use_errno=True)
_X86 = platform.machine() == "x86_64"
_NUMBERS = {  # of a system call: x86-64, and the table that newer architectures share
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "clock_settime": (227, 112),
    "init_module": (175, 105),
    "io_uring_setup": (425, 425),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "perf_event_open": (298, 241),
    "pivot_root": (155, 41),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "setns": (308, 268),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}


def probe(function: Probe) -> Probe:
    PROBES[function.__name__] = function
    return function


def _call(name: str, *arguments: object) -> int:
    number = _NUMBERS[name][0 if _X86 else 1]
    result = int(_libc.syscall(number, *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def _looked_into(name: str, *arguments: object) -> str:
    """A call that cannot succeed, but that only who may make it is told so."""
    try:
        _call(name, *arguments)
    except OSError as exc:
        if exc.errno in {errno.EPERM, errno.ENOSYS, errno.EACCES}:
            raise
    return name


def _opened(path: str, flags: int) -> str:
    os.close(os.open(path, flags | os.O_NONBLOCK))
    return path


def _first_writable(root: str, name: str = "") -> str | None:
    for folder, _, files in os.walk(root):
        for file in files:
            path = f"{folder}/{file}"
            if name and file != name:
                continue
            try:
                return _opened(path, os.O_WRONLY)
            except OSError:
                continue
    return None


# Capabilities and namespaces


@probe
def strong_capabilities() -> str | None:
    strong = {
        2: "DAC_READ_SEARCH",
        12: "NET_ADMIN",
        13: "NET_RAW",
        16: "SYS_MODULE",
        17: "SYS_RAWIO",
        19: "SYS_PTRACE",
        20: "SYS_PACCT",
        21: "SYS_ADMIN",
        22: "SYS_BOOT",
        23: "SYS_NICE",
        24: "SYS_RESOURCE",
        25: "SYS_TIME",
        30: "AUDIT_CONTROL",
        34: "SYSLOG",
        38: "PERFMON",
        39: "BPF",
    }
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("CapBnd"))
    bits = int(line.split()[1], 16)
    return ", ".join(name for bit, name in strong.items() if bits >> bit & 1) or None


@probe
def user_namespace() -> str:
    _call("unshare", 0x10000000)
    return "a user namespace of its own, and all capabilities in it"


@probe
def mount_namespace() -> str:
    _call("unshare", 0x00020000)
    return "a mount namespace of its own"


@probe
def network_namespace() -> str:
    _call("unshare", 0x40000000)
    return "a network namespace of its own"


@probe
def enter_first_process() -> str:
    descriptor = os.open("/proc/1/ns/mnt", os.O_RDONLY)
    _call("setns", descriptor, 0)
    return "the mount namespace of the first process"


@probe
def mount_a_filesystem() -> str:
    os.makedirs("/tmp/mounted", exist_ok=True)
    if _libc.mount(b"none", b"/tmp/mounted", b"tmpfs", 0, None):
        raise OSError(ctypes.get_errno(), "mount")
    _libc.umount2(b"/tmp/mounted", 2)
    return "mount"


@probe
def mount_cgroups_for_a_release_agent() -> str:
    os.makedirs("/tmp/cgroups", exist_ok=True)
    for kind in (b"cgroup", b"cgroup2"):
        if not _libc.mount(b"none", b"/tmp/cgroups", kind, 0, None):
            _libc.umount2(b"/tmp/cgroups", 2)
            return kind.decode()
    raise OSError(ctypes.get_errno(), "mount")


@probe
def remount_the_runtime() -> str:
    if _libc.mount(None, b"/opt/osmosis", None, 32 | 4096, None):
        raise OSError(ctypes.get_errno(), "mount")
    return "the runtime, writable"


@probe
def unmask_proc() -> str:
    if _libc.umount2(b"/proc/kcore", 2):
        raise OSError(ctypes.get_errno(), "umount")
    return "what lies under a mask"


@probe
def pivot_the_root() -> str:
    os.makedirs("/tmp/root/old", exist_ok=True)
    _call("pivot_root", b"/tmp/root", b"/tmp/root/old")
    return "pivot_root"


@probe
def change_the_host_name() -> str:
    socket.sethostname(socket.gethostname())
    return "sethostname"


# Devices and the kernel's files


@probe
def make_a_block_device() -> str:
    for major in (7, 8, 202, 252, 253, 254, 259):
        path = f"/tmp/disk-{major}"
        os.mknod(path, 0o600 | 0o060000, os.makedev(major, 0))
        try:
            return _opened(path, os.O_RDONLY)
        except OSError as exc:
            if exc.errno in {errno.ENXIO, errno.ENODEV}:  # it was let through, and is not there
                return path
    raise PermissionError("no block device can be opened")


@probe
def make_the_memory_device() -> str:
    os.mknod("/tmp/memory", 0o600 | 0o020000, os.makedev(1, 1))
    return _opened("/tmp/memory", os.O_RDONLY)


@probe
def devices_of_the_host() -> str | None:
    known = {"console", "core", "fd", "full", "null", "ptmx", "random", "stderr", "stdin"}
    known |= {"stdout", "tty", "urandom", "zero", "pts", "shm", "mqueue"}
    return ", ".join(sorted(set(os.listdir("/dev")) - known)) or None


@probe
def core_pattern() -> str:
    return _opened("/proc/sys/kernel/core_pattern", os.O_WRONLY)


@probe
def module_loader_path() -> str:
    return _opened("/proc/sys/kernel/modprobe", os.O_WRONLY)


@probe
def magic_system_requests() -> str:
    return _opened("/proc/sysrq-trigger", os.O_WRONLY)


@probe
def binary_formats() -> str:
    return _opened("/proc/sys/fs/binfmt_misc/register", os.O_WRONLY)


@probe
def a_release_agent() -> str | None:
    return _first_writable("/sys/fs/cgroup", "release_agent")


@probe
def own_limits() -> str | None:
    return _first_writable("/sys/fs/cgroup", "memory.max") or _first_writable(
        "/sys/fs/cgroup", "memory.limit_in_bytes"
    )


@probe
def files_of_the_kernel() -> str | None:
    return _first_writable("/sys/kernel") or _first_writable("/proc/sys/kernel")


@probe
def settings_of_the_memory() -> str | None:
    return _first_writable("/proc/sys/vm")


@probe
def memory_of_the_kernel() -> str | None:
    descriptor = os.open("/proc/kcore", os.O_RDONLY)
    return "/proc/kcore" if os.read(descriptor, 16) else None


# System calls that have led out of containers


@probe
def files_by_handle() -> str:
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    _call("name_to_handle_at", -100, b"/etc/passwd", handle, ctypes.byref(mount), 0)
    root = os.open("/etc/hosts", os.O_RDONLY)
    _call("open_by_handle_at", root, handle, os.O_RDONLY)
    return "open_by_handle_at"


@probe
def load_a_module() -> str:
    return _looked_into("init_module", b"", 0, b"")


@probe
def load_another_kernel() -> str:
    return _looked_into("kexec_load", 0, 0, None, 0xFFFF)


@probe
def programs_in_the_kernel() -> str:
    attributes = ctypes.create_string_buffer(struct.pack("IIII", 2, 4, 4, 1) + bytes(112))
    return f"a map: {_call('bpf', 0, attributes, 128)}"


@probe
def performance_events() -> str:
    attributes = ctypes.create_string_buffer(struct.pack("II", 1, 112) + bytes(104))
    return f"an event: {_call('perf_event_open', attributes, -1, 0, -1, 0)}"


@probe
def faults_handled_by_a_program() -> str:
    return f"userfaultfd: {_call('userfaultfd', 0)}"


@probe
def a_ring_for_system_calls() -> str:
    return f"io_uring: {_call('io_uring_setup', 4, ctypes.create_string_buffer(120))}"


@probe
def a_key_in_the_kernel() -> str:
    return f"add_key: {_call('add_key', b'user', b'osmosis', b'x', 1, -3)}"


@probe
def keys_of_others() -> str:
    return f"keyctl: {_call('keyctl', 0, -4, 1)}"


@probe
def restart_the_machine() -> str:
    _call("reboot", 0xFEE1DEAD, 672274793, 0, None)  # it only forbids Ctrl-Alt-Del
    return "reboot"


@probe
def set_the_clock() -> str:
    now = ctypes.create_string_buffer(16)
    _libc.clock_gettime(0, now)
    _call("clock_settime", 0, now)
    return "clock_settime"


@probe
def use_a_swap_file() -> str:
    return _looked_into("swapon", b"/tmp/no-such-file", 0)


@probe
def account_processes() -> str:
    return _looked_into("acct", b"/tmp/no-such-file")


@probe
def the_kernels_log() -> str:
    buffer = ctypes.create_string_buffer(4096)
    return f"{_call('syslog', 3, buffer, 4096)} bytes of it"


@probe
def trace_the_first_process() -> str:
    if _libc.ptrace(0x4206, 1, None, None):  # PTRACE_SEIZE
        raise OSError(ctypes.get_errno(), "ptrace")
    return "ptrace of process 1"


@probe
def memory_of_the_first_process() -> str | None:
    maps = Path("/proc/1/maps").read_text().splitlines()
    start = int(maps[0].split("-")[0], 16)
    descriptor = os.open("/proc/1/mem", os.O_RDONLY)
    return f"{len(os.pread(descriptor, 16, start))} bytes of process 1"


@probe
def write_the_runtime() -> str:
    return _opened("/opt/osmosis/python", os.O_WRONLY | os.O_CREAT)


# Sockets


def _socket(family: int, kind: int, protocol: int = 0) -> str:
    socket.socket(family, kind, protocol).close()
    return f"a socket of family {family}"


@probe
def a_socket_to_the_hypervisor() -> str:
    return _socket(40, socket.SOCK_STREAM)


@probe
def a_socket_by_the_old_door() -> str | None:
    """To the hypervisor, by the call that 32-bit programs have for all that sockets do."""
    if not _X86:
        return None
    page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40, 7)  # below 4 GiB
    start = ctypes.addressof(ctypes.c_char.from_buffer(page))
    page[64:76] = struct.pack("III", 40, socket.SOCK_STREAM, 0)
    # push rbx; socketcall(SYS_SOCKET, arguments) by int 0x80; pop rbx; ret
    code = b"\x53\xb8\x66\0\0\0\xbb\x01\0\0\0\xb9" + struct.pack("I", start + 64)
    page[: len(code) + 4] = code + b"\xcd\x80\x5b\xc3"
    result = ctypes.CFUNCTYPE(ctypes.c_int)(start)()
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return "a socket of family 40"


@probe
def a_socket_for_whole_frames() -> str:
    return _socket(17, socket.SOCK_RAW, socket.htons(3))


@probe
def a_raw_socket() -> str:
    return _socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)


@probe
def a_socket_to_the_kernels_ciphers() -> str:
    return _socket(38, socket.SOCK_SEQPACKET)


@probe
def a_record_in_the_audit_log() -> str | None:
    with socket.socket(16, socket.SOCK_RAW, 9) as link:
        text = b"forged\0"
        link.sendto(struct.pack("IHHII", 16 + len(text), 1107, 5, 1, 0) + text, (0, 0))
        link.settimeout(2)
        answer = link.recv(4096)
    code = struct.unpack("i", answer[16:20])[0] if len(answer) >= 20 else 0
    if code:
        raise OSError(-code, "audit")
    return "an audit record"


@probe
def a_route_of_its_own() -> str:
    with socket.socket(16, socket.SOCK_RAW, 0) as link:  # RTM_NEWADDR: 10.99.0.1/32 on loopback
        body = struct.pack("BBBBI", 2, 32, 0, 0, 1) + struct.pack("HH4B", 8, 2, 10, 99, 0, 1)
        link.sendto(struct.pack("IHHII", 16 + len(body), 20, 0x605, 1, 0) + body, (0, 0))
        link.settimeout(2)
        answer = link.recv(4096)
    code = struct.unpack("i", answer[16:20])[0]
    if code:
        raise OSError(-code, "RTM_NEWADDR")
    return "an address"


# Around the sandbox


@probe
def sockets_of_an_engine() -> str | None:
    found = []
    for folder, _, files in os.walk("/"):
        if folder.startswith("/proc"):
            continue
        found += [f"{folder}/{f}" for f in files if f in {"docker.sock", "containerd.sock"}]
    return ", ".join(found) or None


@probe
def the_supervisors_socket() -> str | None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("/run/osmosis/control.sock")
    return "control.sock"


@probe
def the_metadata_of_a_cloud() -> str:
    with socket.create_connection(("169.254.169.254", 80), 3):
        return "169.254.169.254"


@probe
def processes_of_the_host() -> str | None:
    return None if len([p for p in os.listdir("/proc") if p.isdigit()]) < 30 else "a host's number"


@probe
def a_name_server() -> str | None:
    for line in Path("/etc/resolv.conf").read_text().splitlines():
        if line.startswith("nameserver"):
            address = line.split()[1]
            with socket.create_connection((address, 53), 3):
                return address
    return None


def _run(function: Probe) -> dict[str, str | None]:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        import signal

        signal.alarm(_SECONDS)
        try:
            answer: dict[str, str | None] = {"got": function()}
        except OSError as exc:
            answer = {"refused": str(exc)}
        except BaseException as exc:  # it is told, and fails the test
            answer = {"broken": f"{type(exc).__name__}: {exc}"}
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        data = file.read()
    _, status = os.waitpid(child, 0)
    if not data:
        return {"refused": f"killed by signal {os.WTERMSIG(status)}"}
    found: dict[str, str | None] = json.loads(data)
    return found


if __name__ == "__main__":
    chosen = sys.argv[1:] or list(PROBES)
    print(json.dumps({name: _run(PROBES[name]) for name in chosen}))
