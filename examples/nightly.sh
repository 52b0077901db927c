#!/bin/sh
# From a table in a database to a published Parquet file, once a night. In crontab:
#
#   30 2 * * *  cd /srv/register && CLINIC=postgresql://reader@db/clinic ./nightly.sh
#
# shoal.toml says where the table is, what its columns are and what policy must hold.
# register.db holds the secrets, published/ does not.
set -eu

# The first night: the store.
test -e register.db || shoal store create --store sqlite:///register.db -c shoal.toml --key record

# What is new since last night. Who was discharged leaves.
shoal store sync --store sqlite:///register.db --from "$CLINIC" --table admissions \
                 --column updated_at --deleted discharged_at

# The next release, verified and audited against all earlier ones.
# If it would expose somebody: exit code 1, and no file.
mkdir -p published
shoal store release --store sqlite:///register.db -o "published/admissions-$(date +%F).parquet"
