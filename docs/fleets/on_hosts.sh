#!/bin/sh
# Audits running servers of many hosts over ssh, 32 at a time; a host that cannot be reached stops nobody.
#   on_hosts.sh HOSTS    HOSTS names hosts one a line; the documents are audit/HOST.ndjson
# With GNU parallel the second line is:
#   parallel -a HOSTS -j 32 --joblog audit/log 'ssh -o BatchMode=yes {} flagaudit … > audit/{}.ndjson'
mkdir -p audit
xargs -a "$1" -P 32 -I{} sh -c '
  ssh -o BatchMode=yes -o ConnectTimeout=10 "$1" "flagaudit check -q --processes ${PROCESSES:-^nginx} -f ndjson" >"audit/$1.ndjson" ||
    echo "$1: status $?" >&2' _ {}
