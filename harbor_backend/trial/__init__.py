"""One trial, from its task to its outcome, in the order of its life."""
