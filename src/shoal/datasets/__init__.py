"""Tables to try things on: a synthetic hospital and a survey of any size, and public files the user already has.

How large a table this machine can hold, and how long a million records take on it, says `shoal doctor`.

The modules imported here load NumPy and polars inside their functions, so importing this package is cheap.
"""

from __future__ import annotations

from shoal.datasets.hospital import TAXONOMIES, hospital, hospital_config, taxonomy_path
from shoal.datasets.public import adult, adult_taxonomy_path, census, data_folder
from shoal.datasets.survey import survey, survey_schema

__all__ = [
    "TAXONOMIES",
    "adult",
    "adult_taxonomy_path",
    "census",
    "data_folder",
    "hospital",
    "hospital_config",
    "survey",
    "survey_schema",
    "taxonomy_path",
]
