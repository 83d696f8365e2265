"""Log lines that say which rollout they are about, as JSON where a machine reads them."""

import json
import logging
import os
import sys
import textwrap
import traceback
from datetime import UTC, datetime
from typing import Any, TextIO

from osmosis_ai.common.log_context import log_context
from osmosis_ai.common.texts import printable

FORMAT_ENV = "OSMOSIS_LOG_FORMAT"


_OWN_FIELDS = frozenset(
    [
        *vars(logging.makeLogRecord({})),
        *("message", "asctime", "color_message", "rollout_id", "trace_id", "span_id"),
    ]
)


class RolloutFilter(logging.Filter):
    """Puts the rollout's and the trace's ids on each record; lets every record pass."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add ``rollout_id``, ``trace_id`` and ``span_id``; ``None`` outside a rollout."""
        context = log_context()
        for name in ("rollout_id", "trace_id", "span_id"):
            if not hasattr(record, name):
                setattr(record, name, None if context is None else getattr(context, name))
        return True


class JsonFormatter(logging.Formatter):
    """One JSON object per line, ASCII only.

    ``time`` (ISO 8601, UTC), ``level``, ``logger``, ``message``, the ids where
    there are any, ``exception``, and whatever was passed as ``extra``.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name in ("rollout_id", "trace_id", "span_id"):
            if (value := getattr(record, name, None)) is not None:
                fields[name] = value
        if record.exc_info and record.exc_info[0] is not None:
            fields["exception"] = "".join(traceback.format_exception(*record.exc_info))
        for name, value in vars(record).items():
            if name not in _OWN_FIELDS:
                fields.setdefault(name, value)
        return json.dumps(fields, default=str)


class TextFormatter(logging.Formatter):
    """One line for people; the rollout's id follows the message.

    No text can make a line of its own: line ends in it are escaped, and the lines of a
    traceback are indented.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The record's own line, without its traceback."""
        line = printable(super().formatMessage(record))
        rollout_id = getattr(record, "rollout_id", None)
        return f"{line} [{printable(str(rollout_id))}]" if rollout_id else line

    def formatException(self, ei: Any) -> str:
        """The traceback, indented."""
        return textwrap.indent(printable(super().formatException(ei), keep="\n"), "    ")

    def formatStack(self, stack_info: str) -> str:
        """The stack, indented."""
        return textwrap.indent(printable(stack_info, keep="\n"), "    ")


def configure_logs(stream: TextIO | None = None, style: str | None = None) -> None:
    """Log at INFO to ``stream`` (standard error), unless the root logger has handlers.

    ``style`` is ``json`` or ``text``; ``None`` asks ``OSMOSIS_LOG_FORMAT``, and
    without that a terminal gets text and everything else JSON.

    Raises:
        ValueError: the style is neither.
    """
    stream = stream or sys.stderr
    style = style or os.environ.get(FORMAT_ENV) or ("text" if stream.isatty() else "json")
    if style not in {"json", "text"}:
        raise ValueError(f"{FORMAT_ENV} must be 'json' or 'text', got {style!r}")
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler(stream)
    handler.addFilter(RolloutFilter())
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    root.addHandler(handler)
    root.setLevel(logging.INFO)
