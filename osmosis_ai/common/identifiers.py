"""Rollout ids name directories, so they must stay inside their parent."""


def is_single_path_segment(value: str) -> bool:
    """Whether ``value`` names exactly one entry of a directory, on any platform."""
    if value in {"", ".", ".."}:
        return False
    if any(char in value for char in "/\\\0"):
        return False
    # A lone surrogate has no UTF-8 form, so it can name no file.
    return not any("\ud800" <= char <= "\udfff" for char in value)


def ensure_single_path_segment(value: str) -> str:
    """Return ``value`` when it is one path segment.

    Raises:
        ValueError: it is empty, ``.``, ``..``, or holds a slash, backslash, NUL or
            lone surrogate.
    """
    if not is_single_path_segment(value):
        raise ValueError(
            f"id must be a single path segment (no '/', '\\', NUL, '.' or '..'), got {value!r}"
        )
    return value
