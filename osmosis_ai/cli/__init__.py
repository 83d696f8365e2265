"""The ``osmosis`` command. Importing it is cheap; what a command needs is imported in it."""
