"""The verifier. It trusts nobody: classes are what the masked table itself says they are.

It shares no code with algorithms, kernels, partitions or recoding, and it is what `shoal verify` runs on files that
somebody else made. Suppressed records that stay in the table are a class like any other.
"""

from shoal.verifier.classes import derive_classes
from shoal.verifier.evidence import Check, Evidence, Strength, Violation
from shoal.verifier.examine import audit, verify, verify_file
from shoal.verifier.judging import judge
from shoal.verifier.roles import assumed_roles, assumed_schema, masked_schema, published_quasi
from shoal.verifier.sensitive import AuditedColumn, audited_column

__all__ = [
    "AuditedColumn",
    "Check",
    "Evidence",
    "Strength",
    "Violation",
    "assumed_roles",
    "assumed_schema",
    "audit",
    "audited_column",
    "derive_classes",
    "judge",
    "masked_schema",
    "published_quasi",
    "verify",
    "verify_file",
]
