"""Harbor agents of our own."""
