"""Message content: chat-completions content to ATIF and back, losing nothing.

ATIF knows texts and references to media. What it cannot say is kept as JSON
text, and marks in ``extra`` tell which text that is:

``json_content``    the whole content is JSON text
``json_parts``      indices of parts whose text is JSON
``original_parts``  by index, parts that had more keys than ATIF holds
"""

import json
import mimetypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args
from urllib.parse import urlsplit

from osmosis_ai.rollout.trajectory.atif import ContentPart, ImageMediaType, ImageSource
from osmosis_ai.rollout.trajectory.plain import json_text

JSON_CONTENT = "json_content"
JSON_PARTS = "json_parts"
ORIGINAL_PARTS = "original_parts"

_TEXT_TYPES = ("text", "input_text", "output_text")
_IMAGE_TYPES = frozenset(get_args(ImageMediaType.__value__))


@dataclass
class Converted:
    """Content in ATIF, and the marks that the way back needs."""

    content: str | list[ContentPart]
    marks: dict[str, Any] = field(default_factory=dict)


def content_to_atif(content: Any) -> Converted:
    """Convert the content (JSON values) of one message."""
    if content is None:
        return Converted("")
    if isinstance(content, str):
        return Converted(content)
    if not isinstance(content, list):
        return Converted(json_text(content), {JSON_CONTENT: True})
    if all(_is_text(part) for part in content):
        return _joined(content)
    return _parts(content)


def content_from_atif(
    content: str | Sequence[Mapping[str, Any]] | None, extra: Mapping[str, Any]
) -> Any:
    """Return chat-completions content for ATIF content and the ``extra`` beside it."""
    originals = extra.get(ORIGINAL_PARTS) or {}
    if content is None:
        return ""
    if isinstance(content, str):
        if extra.get(JSON_CONTENT):
            return json.loads(content)
        return list(originals.values()) if originals else content
    encoded = set(extra.get(JSON_PARTS) or ())
    parts: list[Any] = []
    for index, part in enumerate(content):
        if index in encoded:
            parts.append(json.loads(part["text"]))
        else:
            parts.append(originals.get(str(index)) or part_from_atif(part))
    return parts


def part_from_atif(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the chat-completions part for one ATIF content part."""
    if part.get("type") == "text":
        return {"type": "text", "text": part.get("text") or ""}
    kind = f"{part.get('type')}_url"
    return {"type": kind, kind: {"url": (part.get("source") or {}).get("path", "")}}


def _is_text(part: Any) -> bool:
    return (
        isinstance(part, dict)
        and part.get("type") in _TEXT_TYPES
        and isinstance(part.get("text"), str)
    )


def _joined(parts: list[dict[str, Any]]) -> Converted:
    text = "\n".join(part["text"] for part in parts)
    if all(part == {"type": "text", "text": part["text"]} for part in parts):
        return Converted(text)
    return Converted(text, {ORIGINAL_PARTS: {str(i): part for i, part in enumerate(parts)}})


def _parts(content: list[Any]) -> Converted:
    parts: list[ContentPart] = []
    encoded: list[int] = []
    originals: dict[str, Any] = {}
    for index, part in enumerate(content):
        converted = _part(part)
        if converted is None:
            encoded.append(index)
            parts.append(ContentPart(type="text", text=json_text(part)))
            continue
        parts.append(converted)
        if part_from_atif(converted.model_dump()) != part:
            originals[str(index)] = part
    marks: dict[str, Any] = {}
    if encoded:
        marks[JSON_PARTS] = encoded
    if originals:
        marks[ORIGINAL_PARTS] = originals
    return Converted(parts, marks)


def _part(part: Any) -> ContentPart | None:
    if _is_text(part):
        return ContentPart(type="text", text=part["text"])
    if not isinstance(part, dict) or part.get("type") not in ("image_url", "input_image"):
        return None
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, dict) else image
    if not isinstance(url, str) or url.startswith("data:"):
        return None
    declared = image.get("format") if isinstance(image, dict) else None
    media_type = declared or mimetypes.guess_type(urlsplit(url).path)[0]
    if media_type not in _IMAGE_TYPES:
        return None
    return ContentPart(type="image", source=ImageSource(media_type=media_type, path=url))
