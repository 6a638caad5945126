#!/usr/bin/env bash
# pipes_red.sh SCRATCH: pipes.sh names the line whose reader stops early, and nothing once it reads to the end.
set -euo pipefail
scratch=$1
rm -rf "$scratch"
mkdir -p "$scratch/tests"
for reader in 'head -1' 'grep -q word' 'grep -iq word'; do
  printf '#!/usr/bin/env bash\nfmha --help | %s\n' "$reader" >"$scratch/tests/script"
  code=0
  report=$("$(dirname "$0")/pipes.sh" "$scratch" 2>&1) || code=$?
  if ((code != 1)) || [[ $report != *tests/script:2:* ]]; then
    echo "expected code 1 and tests/script:2 for $reader, got $code: $report" >&2
    exit 1
  fi
done
printf '#!/usr/bin/env bash\nfmha --help | sed -n 1p\n' >"$scratch/tests/script"
"$(dirname "$0")/pipes.sh" "$scratch" >/dev/null
rm -rf "$scratch"
