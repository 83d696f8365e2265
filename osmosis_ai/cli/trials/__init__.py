"""``osmosis trials``: running Harbor tasks as they are."""
