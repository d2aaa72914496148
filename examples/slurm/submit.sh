#!/bin/bash
# Converts SOURCE to TARGET in PARTS parts, as an array of Slurm and one job that follows it:
#
#     bash submit.sh SOURCE TARGET PARTS [options of sbatch]
#
# Says the numbers of both jobs. When a part fails for good the second one never runs; submit it all again
# then: parts that are there end at once.
set -euo pipefail

export SOURCE=$1 TARGET=$2 PARTS=$3
shift 3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export EXAMPLES=${here%/*}

parts=$(sbatch --parsable "--array=0-$((PARTS - 1))" "$@" "$here/parts.sbatch")
concat=$(sbatch --parsable "--dependency=afterok:$parts" --kill-on-invalid-dep=yes "$@" \
  "$here/concat.sbatch")
echo "$parts $concat"
