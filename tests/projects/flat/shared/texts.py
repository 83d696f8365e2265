"""Texts."""


def shout(text: str) -> str:
    return f"{text}!"
