"""Releases of one table: what the next may show, and what somebody learns who compares them. Knows no engine and no store."""
