//! Which place passes requests to which upstream.

use crate::nginx::config::settings::{self, Scope};
use crate::nginx::config::values::{self, Origin};
use crate::nginx::config::{Directive, Model};
use std::collections::HashMap;

/// Most targets that one variable may have.
const MAX_TARGETS: usize = 64;

/// How requests are passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// `proxy_pass`
    Proxy,
    /// `grpc_pass`
    Grpc,
    /// `fastcgi_pass`
    Fastcgi,
    /// `memcached_pass`
    Memcached,
}

/// Where they go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target<'m> {
    /// An `upstream` block.
    Upstream(&'m Directive),
    /// An address or a host's name; where the text of it comes from.
    Address(Origin),
    /// Cannot be told; the reason.
    Unknown(String),
    /// No block that was seen has the name, and an include that was not seen may hold one.
    Hidden(&'m Directive),
}

/// One place and one target of its requests.
#[derive(Debug, Clone)]
pub struct Pair<'m> {
    /// The blocks around it.
    pub scope: Scope<'m>,
    /// The directive.
    pub pass: &'m Directive,
    /// How.
    pub protocol: Protocol,
    /// Where to.
    pub target: Target<'m>,
    /// Where to, as texts show it.
    pub shown: String,
    /// PHP-FPM by the looks of it: each connection kept open holds one of its few processes.
    pub is_fpm: bool,
}

/// All of them. A variable with several values makes several.
pub fn all(model: &Model) -> Vec<Pair<'_>> {
    // Of blocks of one name nginx refuses the second.
    let mut upstreams: HashMap<String, &Directive> = HashMap::new();
    for block in settings::upstreams(model) {
        upstreams.entry(block.first().to_ascii_lowercase()).or_insert(block);
    }
    let mut out = Vec::new();
    for scope in settings::places(model) {
        let Some(own) = scope.own() else { continue };
        for pass in own.children() {
            let protocol = match pass.name.as_str() {
                "proxy_pass" => Protocol::Proxy,
                "grpc_pass" => Protocol::Grpc,
                "fastcgi_pass" => Protocol::Fastcgi,
                "memcached_pass" => Protocol::Memcached,
                _ => continue,
            };
            if pass.args.is_empty() {
                continue;
            }
            for (target, shown) in targets(model, &scope, &upstreams, pass.first()) {
                let is_fpm = protocol == Protocol::Fastcgi && looks_like_fpm(&scope, &shown, &target);
                out.push(Pair { scope: scope.clone(), pass, protocol, target, shown, is_fpm });
            }
        }
    }
    out
}

fn looks_like_fpm(scope: &Scope<'_>, shown: &str, target: &Target<'_>) -> bool {
    let php = |text: &str| text.to_ascii_lowercase().contains("php");
    let servers = match target {
        Target::Upstream(block) => block.children().iter().any(|d| d.name == "server" && php(d.first())),
        _ => false,
    };
    php(shown)
        || servers
        || scope.blocks.iter().any(|block| block.name == "location" && block.args.iter().any(|a| php(a)))
}

fn targets<'m>(
    model: &'m Model,
    scope: &Scope<'m>,
    upstreams: &HashMap<String, &'m Directive>,
    text: &str,
) -> Vec<(Target<'m>, String)> {
    let host = host(text);
    let hidden = scope.blocks.first().and_then(|http| settings::unseen(http, "upstream"));
    let named = |host: &str, origin: Origin| {
        let name = without_port(host);
        if let Some(block) = upstreams.get(&name.to_ascii_lowercase()).copied() {
            return (Target::Upstream(block), block.first().to_owned());
        }
        let hidden = hidden.filter(|_| may_be_a_name(name));
        (hidden.map_or(Target::Address(origin), Target::Hidden), host.to_owned())
    };
    if !host.contains('$') {
        return vec![named(host, Origin::Literal)];
    }
    let unknown =
        |variable: &str| (Target::Unknown(format!("{variable} is known only at run time")), host.to_owned());
    let values = match values::of(model, scope, without_port(host)) {
        Ok(values) => values,
        Err(variable) => return vec![unknown(&variable)],
    };
    let mut out: Vec<(Target<'m>, String)> = Vec::new();
    for value in values {
        // `set $target http://backend;` holds the scheme, too.
        let found = named(self::host(&value.text), value.origin);
        if value.text.is_empty() || out.iter().any(|known| known.1 == found.1) {
            continue;
        }
        if out.len() >= MAX_TARGETS {
            return vec![unknown(host)];
        }
        out.push(found);
    }
    if out.is_empty() { vec![unknown(host)] } else { out }
}

/// The host part: without scheme and without path. Variables that begin with a slash end it.
fn host(text: &str) -> &str {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    if rest.starts_with("unix:") {
        return rest;
    }
    let mut end = rest.find(['/', '?']).unwrap_or(rest.len());
    for path in ["$request_uri", "${request_uri}", "$uri", "${uri}", "$document_uri", "$is_args"] {
        end = end.min(rest.find(path).filter(|at| *at > 0).unwrap_or(end));
    }
    rest.get(..end).unwrap_or(rest)
}

/// Whether an upstream block may be called so: addresses could be, and are not.
fn may_be_a_name(host: &str) -> bool {
    !host.starts_with("unix:") && host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_err()
}

fn without_port(host: &str) -> &str {
    if host.starts_with("unix:") {
        return host;
    }
    let start = host.rfind(']').unwrap_or(0);
    match host.get(start..).and_then(|rest| rest.find(':')) {
        Some(colon) => host.get(..start + colon).unwrap_or(host),
        None => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        for (text, want) in [
            ("http://backend", "backend"),
            ("http://backend/x/", "backend"),
            ("https://$up$request_uri", "$up"),
            ("http://backend$request_uri", "backend"),
            ("$scheme://backend", "backend"),
            ("$target", "$target"),
            ("http://127.0.0.1:8080/", "127.0.0.1:8080"),
            ("http://unix:/run/app.sock:/uri", "unix:/run/app.sock:/uri"),
            ("unix:/run/php.sock", "unix:/run/php.sock"),
            ("grpc://[::1]:50051", "[::1]:50051"),
            ("backend:11211", "backend:11211"),
        ] {
            assert_eq!(host(text), want, "{text}");
        }
        assert_eq!(without_port("[::1]:80"), "[::1]");
        assert_eq!(without_port("a:80"), "a");
        assert_eq!(without_port("$up:80"), "$up");
    }
}
