"""Proofs that promises hold under kills and attacks, too long to run with the tests."""
