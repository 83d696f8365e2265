"""How the server shows a trainer who is calling back."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ControllerAuth:
    """The bearer key of a trainer's callback routes; its text form hides the key.

    Raises:
        ValueError: the key cannot go into a header.
    """

    api_key: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse a key that no header can carry, before it fails at the first callback."""
        key = self.api_key
        if key and not (key.isascii() and key.isprintable() and key.strip() == key):
            raise ValueError(
                "controller_api_key must be printable ASCII without blanks around it "
                "(its value is not shown)"
            )

    def as_bearer_headers(self) -> dict[str, str] | None:
        """The ``Authorization`` header, or ``None`` when there is no key."""
        return {"Authorization": f"Bearer {self.api_key}"} if self.api_key else None

    def __repr__(self) -> str:
        return f"ControllerAuth(api_key={'<hidden>' if self.api_key else None})"
