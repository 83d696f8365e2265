"""Running a few lines of bash against the set-up's own function files."""

import os
import subprocess
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
LIB = REPO / "scripts" / "lib"


def bash(
    script: str, *parts: str, environ: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Source `scripts/lib/<part>.sh` for each part, then run `script` as setup.sh would."""
    sources = "\n".join(f'. "{LIB}/{part}.sh"' for part in ("say", *parts))
    return subprocess.run(
        ["/bin/bash", "-c", f"set -euo pipefail\n{sources}\n{script}"],
        env={**os.environ, **(environ or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def executable(path: Path, text: str) -> Path:
    """Write an executable file, and the directories above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path
