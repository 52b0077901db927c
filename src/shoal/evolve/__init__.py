"""Data that changes: a partition that follows its table, at a cost that follows the change and not the table."""
