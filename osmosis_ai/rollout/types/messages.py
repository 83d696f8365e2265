"""Message shapes. A message is whatever mapping the agent framework keeps."""

from typing import Any

type MessageDict = dict[str, Any]
type Messages = list[dict[str, Any]]
