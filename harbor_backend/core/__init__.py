"""What a trial is, and what can go wrong with it."""
