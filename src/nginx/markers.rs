//! Texts that are in a program only if a feature was compiled in, or only if it was not.

use super::memory::Memory;
use super::scan::Found;
use crate::evidence::{Claim, Scope, Source, Strength};

/// One such text.
pub(super) struct Marker {
    /// The fact it speaks of.
    pub(super) fact: &'static str,
    /// A part of the text, long enough to be found nowhere else.
    pub(super) text: &'static str,
    /// Whether its presence means that the feature is there.
    shows: bool,
}

const fn on(fact: &'static str, text: &'static str) -> Marker {
    Marker { fact, text, shows: true }
}

const fn off(fact: &'static str, text: &'static str) -> Marker {
    Marker { fact, text, shows: false }
}

/// The texts, from nginx's source (`src/os/unix/ngx_alloc.c`, `src/http/ngx_http_request.c`,
/// `src/event/modules/ngx_epoll_module.c`, `src/event/ngx_event.c`, `src/core/ngx_log.c`, `src/core/ngx_regex.c`,
/// `src/http/ngx_http_core_module.c`, `src/event/ngx_event_openssl.c`).
pub(super) const TEXTS: [Marker; 17] = [
    on("nginx.debug", "malloc: %p:%uz"),
    on("nginx.debug", "http process request line"),
    on("nginx.debug", "epoll: fd:%d ev:%04XD d:%p"),
    off("nginx.debug", "\"debug_connection\" is ignored, you need to rebuild"),
    off("nginx.debug", "was built without debug support"),
    off("nginx.threads", "\"aio threads\" is unsupported on this platform"),
    on("nginx.file_aio", "io_setup() failed"),
    off("nginx.file_aio", "\"aio on\" is unsupported on this platform"),
    off("nginx.pcre_jit", "was built without PCRE JIT support"),
    on("nginx.pcre_jit", "PCRE library does not support JIT"),
    // The opposite text is there wherever the headers know the function, which the library may yet refuse.
    off("nginx.ktls", "SSL_sendfile() not available"),
    on("nginx.reuseport", "setsockopt(SO_REUSEPORT) "),
    off("nginx.reuseport", "reuseport is not supported on this platform"),
    off("nginx.http_v2", "parameter requires ngx_http_v2_module"),
    off("nginx.http_v3", "parameter requires ngx_http_v3_module"),
    // Only without NGX_LUA_ABORT_AT_PANIC.
    off("nginx.lua_abort_at_panic", "lua atpanic: Lua VM crashed"),
    // `assert` names the source file it stands in; nothing else of the module does.
    on("nginx.lua_assertions", "/ngx_http_lua_util.c"),
];

/// The claims that the texts make.
pub(super) fn read(memory: &Memory<'_>, found: &Found) -> Vec<Claim> {
    let places = TEXTS.iter().zip(&found.markers);
    places
        .filter_map(|(marker, offset)| {
            Some(Claim {
                fact: marker.fact.to_owned(),
                value: marker.shows.into(),
                strength: Strength::Structural,
                source: Source::BuildString,
                scope: Scope::File,
                at: memory.place((*offset)?),
                quote: Some(marker.text.to_owned()),
            })
        })
        .collect()
}
