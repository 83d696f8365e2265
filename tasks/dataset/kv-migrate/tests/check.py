"""Asks the store itself what it holds now; nothing in the agent's container counts."""

import json
import sys
import urllib.parse
import urllib.request

STORE = "http://store:8080"

EXPECTED: dict[str, object] = {
    "user/1001": {"name": "Ada Lovelace", "email": "ada@example.org", "active": True},
    "user/1002": {"name": "Grace Murray", "email": "grace@example.org", "active": False},
    "user/1003": {"name": "Chen, Wei", "email": "wei.chen@example.org", "active": True},
    "user/1004": {"name": "Mary Somerville", "email": "mary@example.org", "active": False},
    "user/1005": {
        "name": 'Émilie du "Châtelet"',
        "email": "emilie@example.org",
        "active": True,
    },
    "user/0042": {"name": "Sofia Kovalevskaya", "email": "sofia@example.org", "active": False},
    "users": 3,
    "config/retention_days": 30,
    "config/banner": {"text": "Maintenance on Sunday", "until": "2026-04-01"},
    "session/8f2c": {"user": "1003", "token": "opaque"},
}


def get(path: str) -> object:
    with urllib.request.urlopen(STORE + path, timeout=10) as response:
        return json.load(response)


def spelled(values: dict[str, object]) -> dict[str, str]:
    """Values as JSON text, in which `true` is not 1 and `null` is not a missing key."""
    return {key: json.dumps(value, sort_keys=True) for key, value in values.items()}


def main() -> int:
    try:
        held = {key: get(f"/keys/{urllib.parse.quote(key)}") for key in get("/keys")}
    except (OSError, ValueError) as error:
        print(f"the store does not answer: {error}")
        return 1
    found, wanted = spelled(held), spelled(EXPECTED)
    wrong = [key for key in found.keys() | wanted.keys() if found.get(key) != wanted.get(key)]
    for key in sorted(wrong):
        print(f"FAIL {key}: expected {wanted.get(key)}, the store holds {found.get(key)}")
    print(f"{len(wrong)} keys are wrong")
    return 1 if wrong else 0


sys.exit(main())
