"""Whose fault it was that an image was not built or pulled, by what the builder said."""

import re

from osmosis_ai.rollout.types.status import RolloutErrorCategory

_READ = 20_000
"""How many characters of the text are read, from its end: what a build prints has no limit."""

_TELLING = re.compile(
    r"^ERROR|failed to (?:solve|resolve|do request|fetch)|Error response|cannot be pulled"
)
"""A line of the builder's own, or of the engine's, that says why it gave up."""

_FULL = re.compile(r"no space left on device|disk quota exceeded", re.IGNORECASE)

_STEP = re.compile(
    r"did not complete successfully: exit code|executor failed running|returned a non-zero code|"
    r"dockerfile parse error|unknown instruction|failed to compute cache key",
    re.IGNORECASE,
)
"""A step of the Dockerfile, or the file itself; whatever such a step printed is the task's."""

_ABSENT = re.compile(
    r"manifest unknown|manifest for .* not found|pull access denied|repository .* not found|"
    r"invalid reference format|: not found\s*$|no match for platform",
    re.IGNORECASE | re.MULTILINE,
)
"""An image that the task names and that is not there."""

_OUTAGE = re.compile(
    r"toomanyrequests|too many requests|rate limit|\b429\b|"
    r"connection (?:refused|reset|timed out)|connection closed|broken pipe|unexpected eof|\bEOF\b|"
    r"no such host|name resolution|server misbehaving|network is unreachable|no route to host|"
    r"i/o timeout|deadline exceeded|request canceled|timeout exceeded|client\.timeout|"
    r"tls:|tls handshake|x509:|certificate|http response to https client|proxyconnect|"
    r"\b50[0234]\b|internal server error|bad gateway|service unavailable|gateway time-?out|"
    r"cannot connect to the docker daemon|does not answer",
    re.IGNORECASE,
)
"""A registry, the way to it, or the engine."""


def build_category(message: str) -> RolloutErrorCategory | None:
    """The category of a build or pull that failed; ``None`` where its text does not say."""
    message = message[-_READ:]
    if _FULL.search(message):
        return RolloutErrorCategory.INFRASTRUCTURE_ERROR
    lines = [line for line in message.splitlines() if line.strip()]
    # Above the builder's own words is what the steps before printed.
    told = "\n".join([*filter(_TELLING.search, lines), *lines[-1:]])
    if _STEP.search(told) or _ABSENT.search(told):
        return RolloutErrorCategory.VALIDATION_ERROR
    if _OUTAGE.search(told):
        return RolloutErrorCategory.INFRASTRUCTURE_ERROR
    return None
