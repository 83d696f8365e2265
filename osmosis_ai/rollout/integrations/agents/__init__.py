"""One module per agent framework; each needs its own extra."""
