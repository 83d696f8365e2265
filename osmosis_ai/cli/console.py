"""Rich's console for text that somebody else wrote."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from osmosis_ai.common.texts import printable


class PrintableConsole(Console):
    """Draws what it is given; characters that would steer the terminal are shown escaped."""

    def render_str(self, text: str, **options: Any) -> Text:
        """See ``Console``; escaped before it is measured."""
        return super().render_str(printable(text, keep="\n"), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """See ``Console``; control codes are the console's own."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text, keep="\n"), segment.style)
