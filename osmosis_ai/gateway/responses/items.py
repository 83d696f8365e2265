"""The input items of a Responses request as chat messages."""

from typing import Any

from osmosis_ai.gateway.errors import ApiError, bad_request

_ROLES = {"user": "user", "system": "system", "developer": "system", "assistant": "assistant"}
"""Servers with chat completions only know no developers."""


def messages_of(instructions: Any, given: Any) -> list[dict[str, Any]]:
    """Chat messages for ``instructions`` and ``input``.

    Consecutive items that the model produced become one assistant message. Reasoning of
    earlier turns is not sent again, as with clients of chat completions.

    Raises:
        ApiError: 400, an item or a part cannot be said in chat completions.
    """
    conversation = _Conversation()
    if instructions is not None:
        if not isinstance(instructions, str):
            raise bad_request(f"instructions: must be a string, got {type(instructions).__name__}")
        conversation.add({"role": "system", "content": instructions})
    if isinstance(given, str):
        conversation.add({"role": "user", "content": given})
    elif isinstance(given, list):
        for index, item in enumerate(given):
            conversation.take(item, f"input.{index}")
    else:
        raise bad_request(f"input: must be a string or a list, got {type(given).__name__}")
    return conversation.messages


class _Conversation:
    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._turn: dict[str, Any] | None = None

    def add(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        self._turn = None

    def take(self, item: Any, where: str) -> None:
        if not isinstance(item, dict):
            raise bad_request(f"{where}: must be an object, got {type(item).__name__}")
        match item.get("type", "message"):
            case "message":
                self._message(item, where)
            case "function_call":
                self._call(item, where)
            case "function_call_output":
                self._result(item, where)
            case "reasoning":
                pass
            case other:
                raise unsupported(where, other)

    def _message(self, item: dict[str, Any], where: str) -> None:
        role = _ROLES.get(str(item.get("role")))
        if role is None:
            raise bad_request(f"{where}.role: unknown role {item.get('role')!r}")
        content = item.get("content")
        if role == "assistant":
            self._said(_joined(content, where))
        else:
            self.add({"role": role, "content": _content(content, f"{where}.content")})

    def _said(self, text: str) -> None:
        turn = self._turn
        if turn is None or (turn.get("content") and "tool_calls" not in turn):
            self._assistant()["content"] = text
        else:
            before = turn.get("content")
            turn["content"] = f"{before}\n{text}" if before else text

    def _call(self, item: dict[str, Any], where: str) -> None:
        for field in ("call_id", "name", "arguments"):
            if not isinstance(item.get(field), str):
                raise bad_request(f"{where}.{field}: must be a string, got {item.get(field)!r}")
        turn = self._turn if self._turn is not None else self._assistant()
        function = {"name": item["name"], "arguments": item["arguments"]}
        call = {"id": item["call_id"], "type": "function", "function": function}
        turn.setdefault("tool_calls", []).append(call)

    def _result(self, item: dict[str, Any], where: str) -> None:
        content = _content(item.get("output"), f"{where}.output", allowed={"input_text"})
        self.add({"role": "tool", "tool_call_id": item.get("call_id"), "content": content})

    def _assistant(self) -> dict[str, Any]:
        turn: dict[str, Any] = {"role": "assistant", "content": None}
        self.messages.append(turn)
        self._turn = turn
        return turn


def unsupported(where: str, kind: Any) -> ApiError:
    """The answer to an item or a part that chat completions do not have."""
    return bad_request(
        f"{where}: {kind!r} is not supported, because the upstream has chat completions only",
        code="unsupported_item",
    )


def _joined(content: Any, where: str) -> str:
    """What an assistant said; refusals are said too."""
    if isinstance(content, str):
        return content
    texts = []
    for index, part in enumerate(_parts(content, f"{where}.content")):
        match part.get("type"):
            case "output_text" | "input_text":
                texts.append(str(part.get("text", "")))
            case "refusal":
                texts.append(str(part.get("refusal", "")))
            case other:
                raise unsupported(f"{where}.content.{index}", other)
    return "".join(texts)


def _content(content: Any, where: str, allowed: set[str] | None = None) -> Any:
    if isinstance(content, str):
        return content
    parts = _parts(content, where)
    for index, part in enumerate(parts):
        if allowed is not None and part.get("type") not in allowed:
            raise unsupported(f"{where}.{index}", part.get("type"))
    return [_part(part, f"{where}.{index}") for index, part in enumerate(parts)]


def _part(part: dict[str, Any], where: str) -> dict[str, Any]:
    match part.get("type"):
        case "input_text" | "output_text":
            return {"type": "text", "text": part.get("text", "")}
        case "input_image" if isinstance(part.get("image_url"), str):
            image = {"url": part["image_url"]}
            if part.get("detail") is not None:
                image["detail"] = part["detail"]
            return {"type": "image_url", "image_url": image}
        case "input_image":
            raise bad_request(f"{where}: an image needs an image_url; file ids do not exist here")
        case "input_file" if part.get("file_data"):
            file = {key: part[key] for key in ("file_data", "filename") if key in part}
            return {"type": "file", "file": file}
        case "input_file":
            raise bad_request(f"{where}: a file needs its file_data; file ids do not exist here")
        case "input_audio":
            return {"type": "input_audio", "input_audio": part.get("input_audio")}
        case other:
            raise unsupported(where, other)


def _parts(content: Any, where: str) -> list[dict[str, Any]]:
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise bad_request(f"{where}: must be a string or a list of parts")
    return content
