#!/usr/bin/env bash
# Runs the recipes of docs/fleets.md on local engines: Spark and DuckDB (from PyPI), GNU parallel's way over ssh (a local
# shell stands for the hosts), Ansible on this machine; checks the Kubernetes manifest against the API's schemas.
#   usage: scripts/fleets.sh [FLAGAUDIT]       needs Debian 12 and root; fetches about 600 MB once
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD
flagaudit=$(realpath "${1:-target/release/flagaudit}")
work=${FLEETS_DIR:-$here/target/fleets}
mkdir -p "$work"
say() { printf 'fleets: %s\n' "$*" >&2; }
if [ ! -e "$work/.ready" ]; then
  say "engines"
  export DEBIAN_FRONTEND=noninteractive
  apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless python3-venv >/dev/null
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install -q pyspark==4.3.0 duckdb==2.0.1 ansible-core==2.19.14 kubernetes-validate==1.37.0
  touch "$work/.ready"
fi
export PATH=$work/venv/bin:$work/bin:$PATH FLAGAUDIT=$flagaudit
cd "$work"
rm -rf audit table bin log && mkdir -p audit bin
ln -s "$flagaudit" bin/flagaudit

# Artefacts: programs of this machine, one that is at -O0, one that is not there, one that is no program.
find /usr/bin /usr/sbin -maxdepth 1 -type f -size -200k | sort > candidates
xargs -a candidates sh -c 'for f; do head -c4 "$f" | grep -q ELF && echo "$f"; done; true' _ > programs
sed -n 1,60p programs > list
sed 's/-O2/-O0/' "$here/testdata/dwarf/gcc12-O2" > unoptimized
printf '%s\n' "$work/unoptimized" /no/such/file "$here/README.md" >> list
wanted=$(wc -l < list)

say "Spark"
python3 "$here/docs/fleets/spark_audit.py" "file://$work/list" "file://$work/table" 4 2> log > spark.txt || { tail -20 log >&2; exit 1; }
python3 - "$wanted" <<'PY'
import duckdb, sys
rows = duckdb.sql("SELECT path, status, verdict, optimization.level FROM 'table/*.parquet'").fetchall()
assert len(rows) == int(sys.argv[1]), (len(rows), sys.argv[1])
by = {path: (status, verdict, level) for path, status, verdict, level in rows}
assert by["/no/such/file"][:2] == ("failed", "error"), by["/no/such/file"]
bad = [v for path, v in by.items() if path.endswith("/unoptimized")]
assert bad == [("ok", "fail", "O0")], bad
print(f"fleets: Spark's table has {len(rows)} artefacts, the bad ones among them")
PY

say "ssh"
cat > bin/ssh <<'SH'
#!/bin/sh
# Stands for ssh: the command runs here, on a host of its own.
while [ "${1#-}" != "$1" ]; do shift 2; done
case $1 in down.example) exit 255 ;; esac
shift
exec sh -c "$*"
SH
chmod +x bin/ssh
cp "$(realpath /usr/bin/sleep)" bin/zz-fleet
bin/zz-fleet 300 & server=$!
trap 'kill $server 2>/dev/null || true' EXIT
until [ "$(readlink "/proc/$server/exe")" = "$work/bin/zz-fleet" ]; do sleep 0.1; done
printf '%s\n' edge1.example edge2.example down.example > hosts
PROCESSES='^zz-fleet' "$here/docs/fleets/on_hosts.sh" hosts 2> log || true
grep -q 'down.example: status 255' log
"$FLAGAUDIT" check -q --no-config -f ndjson --files-from list > audit/build.ndjson 2>/dev/null || true

say "DuckDB"
python3 - "$here/docs/fleets/questions.sql" "$wanted" <<'PY'
import duckdb, sys
answers = [duckdb.sql(query) for query in open(sys.argv[1]).read().split(";\n") if query.strip()]
for answer in answers:
    if answer is not None:
        print(answer)
hosts = dict(duckdb.sql("SELECT host, count(*) FROM targets GROUP BY host").fetchall())
assert hosts == {"edge1.example": 1, "edge2.example": 1, "build": int(sys.argv[2])}, hosts
worst = duckdb.sql("SELECT path FROM targets WHERE optimization.level = 'O0'").fetchall()
assert len(worst) == 1 and worst[0][0].endswith("/unoptimized"), worst
PY

say "Ansible"
printf 'schema = 1\nname = "fleet"\nextends = "builtin:release"\n' > policy.toml
cp "$here/docs/fleets/playbook.yml" .
ansible-playbook --syntax-check -i localhost, playbook.yml
play=(ansible-playbook -i localhost, -c local playbook.yml -e "ansible_python_interpreter=$(command -v python3)"
  -e "flagaudit=$FLAGAUDIT" -e "policy=$work/policy.toml" -e "place=$work/place" -e 'processes=^zz-fleet'
  -e ansible_become=false)
"${play[@]}" > ansible.log || { tail -30 ansible.log >&2; exit 1; }
python3 -c 'import json; d = json.load(open("audit/localhost.json")); assert d["targets"][0]["process"]["command"].endswith("zz-fleet 300"), d'
printf '[build]\nallow = ["00000000"]\n' >> policy.toml
if "${play[@]}" > ansible.log; then say "the playbook passed a build that the policy does not accept"; exit 1; fi
grep -q 'the policy does not accept what runs here' ansible.log

say "Kubernetes"
kubernetes-validate --strict "$here/docs/fleets/daemonset.yaml"
say "all recipes work"
