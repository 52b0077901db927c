"""The store: a table in a database, kept anonymized; its batches, its feeds and what it publishes."""
