//! Texts that are in a program only if a feature was compiled in, or only if it was not.

use super::memory::Memory;
use super::scan::Found;
use crate::evidence::{Claim, Held, Scope, Source, Strength};
use crate::facts::Conflict;
use std::collections::BTreeMap;

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
pub(super) const TEXTS: [Marker; 14] = [
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
    on("nginx.ktls", "SSL_sendfile() failed"),
    off("nginx.reuseport", "reuseport is not supported on this platform"),
    off("nginx.http_v2", "parameter requires ngx_http_v2_module"),
    off("nginx.http_v3", "parameter requires ngx_http_v3_module"),
];

/// What the texts show, and the claims it rests on.
pub(super) fn read(
    memory: &Memory<'_>,
    found: &Found,
) -> (BTreeMap<String, Held<bool>>, Vec<Claim>, Vec<Conflict>) {
    let mut claims: Vec<Claim> = Vec::new();
    for (marker, offset) in TEXTS.iter().zip(&found.markers) {
        let Some(offset) = *offset else { continue };
        claims.push(Claim {
            fact: marker.fact.to_owned(),
            value: marker.shows.into(),
            strength: Strength::Structural,
            source: Source::BuildString,
            scope: Scope::File,
            at: memory.place(offset),
            quote: Some(marker.text.to_owned()),
        });
    }
    let mut features = BTreeMap::new();
    let mut conflicts = Vec::new();
    let mut facts: Vec<&str> = TEXTS.iter().map(|marker| marker.fact).collect();
    facts.dedup();
    for fact in facts {
        let mine: Vec<&Claim> = claims.iter().filter(|claim| claim.fact == fact).collect();
        let Some(first) = mine.first() else { continue };
        if mine.iter().all(|claim| claim.value == first.value) {
            let value = first.value == true;
            features.insert(fact.to_owned(), Held::new(value, Strength::Structural, Source::BuildString));
        } else {
            let claims = mine.into_iter().cloned().collect();
            conflicts.push(Conflict { fact: fact.to_owned(), claims });
        }
    }
    (features, claims, conflicts)
}
