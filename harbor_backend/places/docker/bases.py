"""The images that a Dockerfile starts from."""

import re
from collections.abc import Mapping

# May find more than there is, in a here-document for example: that is no image of the engine.
_CONTINUED = re.compile(r"[\\`][ \t]*\r?\n")
_FROM = re.compile(
    r"^[ \t]*FROM[ \t]+(?:--\S+[ \t]+)*(?P<image>\S+)(?:[ \t]+AS[ \t]+(?P<stage>\S+))?",
    re.IGNORECASE | re.MULTILINE,
)
_OTHER_FROM = re.compile(r"(?:--|[=,])from=([^\s,]+)", re.IGNORECASE)
_ARG = re.compile(r"^[ \t]*ARG[ \t]+(.+)$", re.IGNORECASE | re.MULTILINE)
_DEFAULT = re.compile(r"""(\w+)=("[^"]*"|'[^']*'|\S*)""")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?::([-+])([^}]*))?\})")
_REFERENCE = re.compile(r"[a-zA-Z0-9][\w./:@-]*")


def base_images(dockerfile: str) -> list[str]:
    """The references of all images that a Dockerfile takes something from, in order of name.

    Stages of its own and what only the builder could resolve are left out.
    """
    text = _CONTINUED.sub(" ", dockerfile)
    first = _FROM.search(text)
    arguments = dict[str, str]()
    for line in _ARG.findall(text[: first.start()] if first else ""):
        for name, value in _DEFAULT.findall(line):
            arguments[name] = _substituted(value.strip("\"'"), arguments)
    stages, found = {"scratch"}, set[str]()
    for match in _FROM.finditer(text):
        image = _substituted(match["image"], arguments)
        if image.lower() not in stages:
            found.add(image)
        if match["stage"]:
            stages.add(match["stage"].lower())
    found |= {name for name in _OTHER_FROM.findall(text) if name.lower() not in stages}
    return sorted(name for name in found if _REFERENCE.fullmatch(name) and not name.isdigit())


def _substituted(text: str, arguments: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        given = arguments.get(match[1] or match[2], "")
        if match[3] == "-":
            return given or match[4]
        if match[3] == "+":
            return match[4] if given else ""
        return given

    return _VARIABLE.sub(value, text)
