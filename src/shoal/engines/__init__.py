"""Engines: where the records are, when they are not in memory. docs/scale.md explains the protocol."""
