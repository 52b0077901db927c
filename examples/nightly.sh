#!/bin/sh
# From a table in a database to a published Parquet file, once a night. In crontab:
#
#   30 2 * * *  cd /srv/register && CLINIC=postgresql://reader@db/clinic ./nightly.sh
#
# shoal.toml says what the columns are and what policy must hold. The store holds the secrets, published/ does not.
set -eu
: "${CLINIC:?name the database: CLINIC=postgresql://reader@host/clinic}"
: "${TABLE:=admissions}" "${STORE:=sqlite:///register.db}" "${OUTPUT:=published}" "${SHOAL:=shoal}"
mkdir -p "$OUTPUT"

# What is new since last night: rows whose updated_at is as late as the last one seen, or later. Who was discharged leaves.
$SHOAL store sync --store "$STORE" --from "$CLINIC" --table "$TABLE" --column updated_at --deleted discharged_at

# The next release, verified and audited against all earlier ones. If it would expose somebody, exit code 1 and no file.
$SHOAL store release --store "$STORE" -o "$OUTPUT/$TABLE-${NIGHT:-$(date +%F)}.parquet"
