#!/usr/bin/env bash
# What action.yml runs: installs flagaudit, and checks. Everything that a workflow gives comes through the environment
# (INPUT_…), is quoted, and is handed on as a value of an option, never as text of a script.
#   usage: scripts/action.sh install|check
set -euo pipefail
sources=$(cd "$(dirname "$0")/.." && pwd)

fail() { printf '::error::%s\n' "$*"; exit 2; }

# The program of a release, held against the check sums of that release.
install_release() {
    local version=${INPUT_VERSION:-} machine name base folder
    version=${version#v}
    [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]] || fail "version must be given as 1.2.3"
    [[ ${ACTION_REPOSITORY:-} =~ ^[0-9A-Za-z._-]+/[0-9A-Za-z._-]+$ ]] || fail "install: release needs the action of a repository"
    machine=$(uname -m)
    name=flagaudit-$version-$machine-unknown-linux-gnu
    base=${GITHUB_SERVER_URL:-https://github.com}/$ACTION_REPOSITORY/releases/download/v$version
    folder=$(mktemp -d "$RUNNER_TEMP/flagaudit.XXXXXX")
    curl --proto '=https' --tlsv1.2 -fsSL --retry 3 -o "$folder/SHA256SUMS" "$base/SHA256SUMS"
    curl --proto '=https' --tlsv1.2 -fsSL --retry 3 -o "$folder/$name.tar.gz" "$base/$name.tar.gz"
    (cd "$folder" && grep -F "  $name.tar.gz" SHA256SUMS | sha256sum --check --strict --quiet)
    tar -xzf "$folder/$name.tar.gz" -C "$folder"
    printf '%s\n' "$folder/$name" >>"$GITHUB_PATH"
}

install() {
    local how=${INPUT_INSTALL:-auto}
    if [ "$how" = auto ]; then
        if command -v flagaudit >/dev/null; then how=path
        elif [ -n "${INPUT_VERSION:-}" ]; then how=release
        else how=cargo; fi
    fi
    case $how in
        path) command -v flagaudit >/dev/null || fail "install: path, and there is no flagaudit in PATH" ;;
        release) install_release ;;
        cargo)
            command -v cargo >/dev/null || fail "install: cargo needs a Rust toolchain of 1.88 or newer"
            cargo install --locked --quiet --path "$sources" --root "$RUNNER_TEMP/flagaudit"
            printf '%s\n' "$RUNNER_TEMP/flagaudit/bin" >>"$GITHUB_PATH"
            ;;
        *) fail "install must be auto, release, cargo or path" ;;
    esac
}

check() {
    local sarif=$RUNNER_TEMP/flagaudit.sarif status=0 options=("--fail-on=${INPUT_FAIL_ON:-error}")
    [ -z "${INPUT_POLICY:-}" ] || options+=("--policy=$INPUT_POLICY")
    [ -z "${INPUT_BASELINE:-}" ] || options+=("--baseline=$INPUT_BASELINE")
    [ -z "${INPUT_NGINX_CONF:-}" ] || options+=("--nginx-conf=$INPUT_NGINX_CONF")
    # A list, so that a target with a space, or one that looks like an option, is a target.
    local list=$RUNNER_TEMP/flagaudit.targets
    printf '%s\n' "${INPUT_TARGETS:-}" >"$list"
    options+=("--files-from=$list")

    rm -f "$sarif"
    flagaudit check "${options[@]}" --quiet --format=sarif --output="$sarif" >/dev/null 2>&1 || true
    # Annotations on standard output, the summary of the job, and the verdict.
    flagaudit check "${options[@]}" --format=github || status=$?
    {
        printf 'status=%s\n' "$status"
        if [ -f "$sarif" ]; then printf 'sarif=%s\n' "$sarif"; fi
    } >>"$GITHUB_OUTPUT"
    exit "$status"
}

case ${1:-} in
    install | check) "$1" ;;
    *) echo "usage: scripts/action.sh install|check" >&2; exit 2 ;;
esac
