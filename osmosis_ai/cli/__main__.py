"""``python -m osmosis_ai.cli`` is the ``osmosis`` command."""

from osmosis_ai.cli.main import main

main()
