# Sourced by the other scripts: makes sure of a Rust toolchain and of a C linker.
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
