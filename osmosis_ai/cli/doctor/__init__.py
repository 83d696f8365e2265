"""``osmosis doctor``: what this machine has, what it lacks, and the remedy."""
