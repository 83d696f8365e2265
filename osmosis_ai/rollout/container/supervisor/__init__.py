"""The host's hand in a sandbox: runs commands and moves files for the host.

It connects to the host's socket once; both sides then exchange frames on
numbered channels. Standard library only, and little of it: every sandbox pays
for this package at its start.
"""
