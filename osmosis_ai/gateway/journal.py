"""One endpoint's record file and the thread that writes it."""

from dataclasses import dataclass

from osmosis_ai.gateway.recordfile import RecordFile
from osmosis_ai.gateway.recordwriter import RecordWriter


@dataclass(frozen=True)
class Journal:
    """Where the lines of one endpoint go."""

    file: RecordFile
    writer: RecordWriter

    @property
    def error(self) -> str | None:
        """Why no more lines are written, or ``None``."""
        return self.file.error

    def write(self, line: str) -> None:
        """Append a line of ASCII, soon."""
        self.writer.put(self.file, line.encode("ascii") + b"\n")

    async def flush(self) -> None:
        """Return when all lines are handed to the kernel."""
        await self.writer.flush(self.file)
