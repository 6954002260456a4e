# Sourced by the other scripts: makes sure of a Rust toolchain and of a C linker, and brings cargo's tools.
if ! command -v cargo >/dev/null && [ -x "$HOME/.cargo/bin/cargo" ]; then
  PATH="$HOME/.cargo/bin:$PATH"
fi
if ! command -v cargo >/dev/null; then
  echo "Rust 1.88 or newer is needed; see https://rustup.rs (Debian 12's own rustc is too old)" >&2
  exit 2
fi
if ! command -v cc >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends gcc libc6-dev >/dev/null
fi

# cargo_tool NAME[@VERSION]: a cargo subcommand that is asked little, so how fast it was compiled does not matter. Two that
# ask at once do not both compile it.
cargo_tool() {
  mkdir -p "${CARGO_HOME:-$HOME/.cargo}"
  # shellcheck disable=SC2016 # for the inner shell
  flock "${CARGO_HOME:-$HOME/.cargo}" \
    sh -c 'command -v "${1%@*}" >/dev/null || cargo install --locked --quiet --debug "$1"' sh "$1"
}
