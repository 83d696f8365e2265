"""Where the shipped tasks are, and what each of them is there to show."""

from pathlib import Path

TASKS = Path(__file__).resolve().parents[2] / "tasks"
TEMPLATE = TASKS / "multiply"
DATASET = TASKS / "dataset"
NAMES = sorted(path.name for path in DATASET.iterdir() if path.is_dir())
