"""A result that is a file, which any process of a sandbox may write: the runner signs its own.

The host gives the runner a key with its input, which is gone before user code begins. The tools
that an agent runs cannot read the runner's memory; code within the runner's own process can.
"""

import hmac

SIGNED = "--signed"
"""The runner's argument: the input begins with a line that holds the key."""
SIGNATURE_BYTES = 65


def sealed(data: bytes, key: str) -> bytes:
    """The data behind a line that only who has the key can write."""
    return _signature(data, key) + b"\n" + data


def opened(data: bytes, key: str) -> bytes | None:
    """What ``sealed`` was given; ``None`` when it was not with this key."""
    signature, rest = data[: SIGNATURE_BYTES - 1], data[SIGNATURE_BYTES:]
    return rest if hmac.compare_digest(signature, _signature(rest, key)) else None


def _signature(data: bytes, key: str) -> bytes:
    return hmac.new(key.encode(), data, "sha256").hexdigest().encode()
