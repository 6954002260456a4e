#!/usr/bin/env bash
# Holds the report formats against the programs that read them: Microsoft's SARIF validator, xmllint, promtool, a scrape
# of node_exporter's textfile collector, the Nu HTML checker, and headless Chromium; and the alert rules in docs/.
# The documents are of every kind of report that tests/formats.rs makes: pass, fail, partial, error, empty, very many units
# and findings, hostile strings.
#   usage: scripts/validate-formats.sh [DIRECTORY]     tools and documents go to DIRECTORY (default: target/formats)
#   CHROMIUM=/usr/bin/chromium     Missing Debian packages are installed if this runs as root.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=${1:-$root/target/formats}
documents=$work/documents
rm -rf "$documents"
mkdir -p "$documents" "$work/screenshots"
work=$(cd "$work" && pwd)
documents=$work/documents

say() { printf '== %s\n' "$*"; }

# Serves DIRECTORY with node_exporter's textfile collector and holds the scrape against FILE: no error, every series.
scrape() {
    local directory=$1 file=$2 port=19100 exporter scraped=$work/scrape.txt
    prometheus-node-exporter --collector.disable-defaults --collector.textfile \
        --collector.textfile.directory="$directory" --web.listen-address=127.0.0.1:$port >"$work/exporter.log" 2>&1 &
    exporter=$!
    rm -f "$scraped"
    for _ in $(seq 50); do
        curl -sf "http://127.0.0.1:$port/metrics" >"$scraped" && break
        sleep 0.1
    done
    kill "$exporter"
    wait "$exporter" 2>/dev/null || true
    grep -q '^node_textfile_scrape_error 0$' "$scraped"
    test "$(grep -c '^flagaudit_' "$scraped" || true)" = "$(grep -c '^flagaudit_' "$file" || true)"
}

missing=()
have() { command -v "$1" >/dev/null || missing+=("$2"); }
have promtool prometheus
have prometheus-node-exporter prometheus-node-exporter
have "${CHROMIUM:-chromium}" chromium
have java default-jre-headless
have npm npm
have xmllint libxml2-utils
have curl curl
if [ ${#missing[@]} -gt 0 ]; then
    say "installing ${missing[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
if [ ! -d "$work/node_modules/puppeteer-core" ]; then
    say "installing the validators"
    # Chromium comes from the system: puppeteer-core brings none.
    npm install --prefix "$work" --no-save --no-fund --no-audit --loglevel=error \
        @microsoft/sarif-multitool@5.7.0 vnu-jar@26.9.27 puppeteer-core@24.43.1 >/dev/null
fi
sarif=$(find "$work/node_modules/@microsoft" -name Sarif.Multitool -type f | head -n 1)
vnu=$(find "$work/node_modules/vnu-jar" -name vnu.jar | head -n 1)
chmod u+x "$sarif"

say "documents"
FLAGAUDIT_FORMATS_DIR=$documents cargo test --locked --quiet --test formats

say "SARIF: validator"
# An error or a warning has a location and a rule in front of it; the program's own status does not tell.
"$sarif" validate "$documents"/*.sarif --level "Error;Warning" >"$work/sarif.log" 2>&1 || true
grep -aq "^Done. $(find "$documents" -name '*.sarif' | wc -l) files scanned" "$work/sarif.log"
if grep -aoE '.{0,200}(error|warning) [A-Z]+[0-9]+.{0,300}' "$work/sarif.log"; then exit 1; fi
for file in "$documents"/*.sarif; do
    test "$(gzip -c "$file" | wc -c)" -lt 10000000
done

say "JUnit: well-formed, and of the schema in testdata/junit.xsd"
xmllint --noout --nonet --huge --schema "$root/testdata/junit.xsd" "$documents"/*.junit.xml 2>"$work/junit.log" ||
    { grep -v ' validates$' "$work/junit.log"; exit 1; }

say "Prometheus: promtool, and a scrape"
for file in "$documents"/*.prom; do
    promtool check metrics <"$file"
done
# Each file by itself, and then two runs side by side, as two audits on one host would be.
for file in "$documents"/*.prom; do
    textfiles=$(mktemp -d)
    cp "$file" "$textfiles/"
    scrape "$textfiles" "$file"
    rm -rf "$textfiles"
done
textfiles=$(mktemp -d)
cp "$documents"/{fail,partial,error,empty}.check.prom "$textfiles/"
cat "$textfiles"/*.prom >"$work/together.prom"
scrape "$textfiles" "$work/together.prom"
rm -rf "$textfiles"

say "Prometheus: alert rules"
promtool check rules "$root/docs/alerts.yml"
promtool test rules "$root/docs/alerts.test.yml"

say "HTML: Nu checker"
# What is left out is about the characters of hostile names, which are shown as they are.
java -jar "$vnu" --format gnu --filterpattern '.*(Private Use Area|Normalization Form C).*' "$documents"/*.html

say "HTML: Chromium"
(cd "$work" && CHROMIUM=$(command -v "${CHROMIUM:-chromium}") node "$root/scripts/formats-browser.mjs" "$documents" "$work/screenshots")
say "all formats are valid"
