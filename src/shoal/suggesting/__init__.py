"""What is suggested for a table: who each column may be, which taxonomies and which policy suit it, each with its reason.

Suggestions rest on three things: what a column is called, what its values look like, and how well they tell records apart.
Which of the columns that others may know are proposed as quasi-identifiers, and what becomes of the rest, is `choice`.

>>> import polars as pl
>>> frame = pl.DataFrame({"surname": ["Ash", "Birch", "Cole"], "age": [21, 34, 34], "illness": ["flu", "flu", "cold"]})
>>> [column.role for column in profile(frame).columns]
['identifier', 'quasi', 'sensitive']
"""

from shoal.suggesting.found import ColumnProfile, Costs, Diversity, Profile
from shoal.suggesting.table import as_quasi, profile, read_as_found

__all__ = ["ColumnProfile", "Costs", "Diversity", "Profile", "as_quasi", "profile", "read_as_found"]
