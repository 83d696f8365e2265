"""Whose fault it is that an image cannot be had, by what builders and engines say."""

import pytest
from harbor.environments.base import SandboxBuildFailedError

from harbor_backend.trial.categories import category_of
from harbor_backend.trial.conclude import not_started
from harbor_backend.trial.images import build_category
from osmosis_ai.rollout.types.status import RolloutErrorCategory

INFRASTRUCTURE = RolloutErrorCategory.INFRASTRUCTURE_ERROR
VALIDATION = RolloutErrorCategory.VALIDATION_ERROR

SOLVE = (
    "/t/Dockerfile does not build. Its last lines:\n#3 ...\nERROR: failed to solve: r.io/a/b:1: "
)
PULL = "The image 'r.io/a/b:1' is not on this machine and cannot be pulled: "
AFTER = " Load or tag it locally, or give the task a Dockerfile"

OUTAGES = [
    "failed to resolve source metadata for r.io/a/b:1: unexpected status from HEAD request to "
    "https://r.io/v2/a/b/manifests/1: 429 Too Many Requests",
    "toomanyrequests: You have reached your unauthenticated pull rate limit.",
    'failed to do request: Head "http://localhost:1/v2/": dial tcp [::1]:1: connect: connection '
    "refused",
    'Get "https://r.io/v2/": dial tcp: lookup r.io on 10.0.0.2:53: no such host',
    'Get "https://r.io/v2/": dial tcp: lookup r.io: Temporary failure in name resolution',
    "unexpected status from GET request to https://r.io/v2/: 503 Service Unavailable",
    "received unexpected HTTP status: 502 Bad Gateway",
    'Get "https://r.io/v2/": net/http: TLS handshake timeout',
    'Get "https://r.io/v2/": tls: failed to verify certificate: x509: certificate signed by '
    "unknown authority",
    'Get "https://r.io/v2/": context deadline exceeded (Client.Timeout exceeded)',
    'Get "https://r.io/v2/": read tcp 10.0.0.1:1->10.0.0.2:443: read: connection reset by peer',
    "failed to copy: httpReadSeeker: failed open: unexpected EOF",
    "write /var/lib/docker/tmp/x: no space left on device",
]
ABSENT = [
    "docker.io/library/nosuch:1: not found",
    "manifest for r.io/a/b:1 not found: manifest unknown: manifest unknown",
    "pull access denied for a/b, repository does not exist or may require 'docker login'",
]
STEPS = [
    # Whatever a step printed, it is the task's.
    "#7 1.2 curl: (7) Failed to connect: Connection refused\n#7 ERROR: process exited\n"
    'ERROR: failed to solve: process "/bin/sh -c x" did not complete successfully: exit code: 7',
    "429 Too Many Requests\nThe command '/bin/sh -c false' returned a non-zero code: 1",
    "#5 ERROR: executor failed running [/bin/sh -c x]: exit code: 7\n------\nfailed to solve: "
    "executor failed running [/bin/sh -c x]: exit code: 7\n. Stderr: None. ",
    "ERROR: failed to solve: dockerfile parse error on line 2: unknown instruction: RUM",
    'ERROR: failed to solve: failed to compute cache key: "/x": not found',
]


@pytest.mark.parametrize("text", OUTAGES)
@pytest.mark.parametrize(("before", "after"), [(SOLVE, ""), (PULL, AFTER)])
def test_what_fails_at_the_registry_is_infrastructure(before: str, text: str, after: str) -> None:
    message = f"{before}{text}{after}"
    assert build_category(message) is INFRASTRUCTURE
    for phase in ("environment_setup", "verifier"):
        assert category_of("SandboxBuildFailedError", phase, message=message) is INFRASTRUCTURE
    started = not_started(SandboxBuildFailedError(message)).workflow
    assert (started.err_category, started.err_message) == (INFRASTRUCTURE, message)


@pytest.mark.parametrize("message", [*(f"{SOLVE}{t}" for t in ABSENT), *STEPS])
def test_what_the_task_asks_for_in_vain_is_its_own(message: str) -> None:
    assert build_category(message) is VALIDATION
    for kind in ("SandboxBuildFailedError", "RuntimeError"):
        assert category_of(kind, "environment_setup", message=message) is VALIDATION


def test_compose_says_it_in_its_own_way() -> None:
    refused = 'Get "http://localhost:1/v2/": dial tcp 127.0.0.1:1: connect: connection refused'
    message = "Docker compose command failed for environment t. Stdout: main Pulling\n main Error "
    message += f"{refused}\nError response from daemon: {refused}\n. Stderr: None. "
    assert build_category(message) is INFRASTRUCTURE


def test_a_step_that_fills_the_disk_is_not_the_tasks() -> None:
    message = f"#4 tar: write error: No space left on device\n{STEPS[1]}"
    assert build_category(message) is INFRASTRUCTURE


def test_what_an_earlier_step_printed_says_nothing() -> None:
    message = f"#4 sh: git: not found\n#5 done\n{SOLVE}{OUTAGES[0]}"
    assert build_category(message) is INFRASTRUCTURE
    assert build_category("#4 HTTP 503, going on\n#5 done\nERROR: failed to solve: what?") is None


def test_without_a_word_a_build_is_the_tasks_and_an_engine_is_not() -> None:
    assert category_of("SandboxBuildFailedError", "environment_setup") is VALIDATION
    assert category_of("RuntimeError", "environment_setup", message="broken") is INFRASTRUCTURE
    assert (
        category_of("RuntimeError", "agent", message=STEPS[0]) is RolloutErrorCategory.AGENT_ERROR
    )
