//! An upstream block: whether it keeps connections at all.

use super::spelt;
use crate::nginx::catalogue;
use crate::nginx::config::{Directive, Place, settings};
use crate::rules::config_common::View;

/// Load-balancing methods; `keepalive` wraps the one before it (`ngx_http_upstream_init_keepalive`).
const METHODS: [&str; 7] = ["least_conn", "ip_hash", "hash", "random", "least_time", "fair", "sticky"];
/// Connections an upstream keeps by default since 1.29.7.
const DEFAULT: u64 = 32;

/// What an upstream block says about connections.
#[derive(Debug, Clone)]
pub struct Pool<'m> {
    /// The block.
    pub block: &'m Directive,
    keepalive: Option<&'m Directive>,
    hidden: Option<&'m Directive>,
    method_below: Option<&'m Directive>,
    limit: Option<&'m Directive>,
    servers: u64,
    /// A balancer in Lua.
    pub lua: Option<&'m Directive>,
}

/// Why an upstream keeps no connections, or too few.
#[derive(Debug, Clone)]
pub enum Cause<'m> {
    /// `keepalive 0`
    Disabled(&'m Directive),
    /// No `keepalive`.
    None,
    /// The module is not in the build.
    NoModule,
    /// The load-balancing method stands below `keepalive`.
    Order(&'m Directive, &'m Directive),
    /// A limit that ends every connection after one request.
    Limit(&'m Directive),
    /// Fewer connections than servers.
    Small(Option<&'m Directive>, u64, u64),
    /// An include that was not seen may set it.
    Hidden(&'m Directive),
}

impl<'m> Pool<'m> {
    /// Reads a block.
    pub fn read(block: &'m Directive) -> Self {
        let list = block.children();
        let keepalive_at = list.iter().position(|d| d.name == "keepalive");
        let below = |at: usize| list.iter().skip(at).find(|d| METHODS.contains(&d.name.as_str()));
        let ends = |d: &&Directive| match d.name.as_str() {
            "keepalive_requests" => number(d.first()).is_some_and(|n| n <= 1),
            "keepalive_timeout" => {
                number(d.first().trim_end_matches(|c: char| c.is_ascii_lowercase())) == Some(0)
            }
            _ => false,
        };
        Self {
            block,
            keepalive: keepalive_at.and_then(|at| list.get(at)),
            hidden: settings::unseen(block, "keepalive"),
            method_below: keepalive_at.and_then(below),
            limit: list.iter().find(ends),
            servers: list
                .iter()
                .filter(|d| d.name == "server" && !d.args.iter().any(|arg| arg == "down" || arg == "backup"))
                .count() as u64,
            lua: list.iter().find(|d| d.name.starts_with("balancer_by_lua")),
        }
    }

    /// Why it keeps none, by the first row that applies. `new` tells whether keeping is the default.
    pub fn fault(&self, view: &View<'_>, new: bool) -> Option<Cause<'m>> {
        let zero = self.keepalive.filter(|d| number(d.first()) == Some(0));
        if let Some(keepalive) = zero {
            // Before 1.29.7 nginx refuses this; `unsupported-by-build` says so.
            return new.then_some(Cause::Disabled(keepalive));
        }
        if self.keepalive.is_none() && self.lua.is_none() {
            if let Some(hidden) = self.hidden {
                return Some(Cause::Hidden(hidden));
            }
            if view.has("ngx_http_upstream_keepalive_module") == Some(false) {
                return Some(Cause::NoModule);
            }
            if !new {
                return Some(Cause::None);
            }
        }
        if let (Some(keepalive), Some(method), false) = (self.keepalive, self.method_below, new) {
            return Some(Cause::Order(keepalive, method));
        }
        self.limit.map(Cause::Limit)
    }

    /// Whether it keeps fewer connections than it has servers.
    pub fn small(&self, new: bool) -> Option<Cause<'m>> {
        let kept = match self.keepalive {
            Some(directive) => number(directive.first())?,
            None if new => DEFAULT,
            None => return None,
        };
        (self.hidden.is_none() && kept < self.servers).then_some(Cause::Small(
            self.keepalive,
            kept,
            self.servers,
        ))
    }
}

impl Cause<'_> {
    /// A word for the finding's identity.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Disabled(_) => "disabled",
            Self::None => "none",
            Self::NoModule => "no-module",
            Self::Order(..) => "order",
            Self::Limit(_) => "limit",
            Self::Small(..) => "small",
            Self::Hidden(_) => "hidden",
        }
    }

    /// Where it stands; the block where that is it.
    pub fn at(&self) -> Option<Place> {
        match self {
            Self::Disabled(d) | Self::Limit(d) | Self::Order(d, _) | Self::Hidden(d) => Some(d.at),
            Self::Small(d, ..) => d.map(|d| d.at),
            Self::None | Self::NoModule => None,
        }
    }

    /// Whether connections are kept, but too few.
    pub fn is_small(&self) -> bool {
        matches!(self, Self::Small(..))
    }

    /// Whether it cannot be told.
    pub fn is_hidden(&self) -> bool {
        matches!(self, Self::Hidden(_))
    }

    /// What is wrong, and what to do.
    pub fn texts(&self, view: &View<'_>) -> (String, String) {
        match self {
            Self::Disabled(directive) => (
                format!("connections not reused, disabled explicitly by `{}`", spelt(directive)),
                "`keepalive 32;` in its place, or take the line out".to_owned(),
            ),
            Self::None => (
                "connections not reused, it has no keepalive".to_owned(),
                "put `keepalive 32;` into the upstream block, below the load-balancing method".to_owned(),
            ),
            Self::NoModule => {
                let module = "ngx_http_upstream_keepalive_module";
                let remedy = match catalogue::remedy(module, view.family, view.version) {
                    Some(catalogue::Remedy::Drop(option)) => {
                        format!("configure without {option}; make clean; rebuild; then `keepalive 32;` in the upstream block")
                    }
                    _ => "use nginx 1.1.4 or newer with `keepalive 32;` in the upstream block".to_owned(),
                };
                (format!("connections not reused, this build has no {module}"), remedy)
            }
            Self::Order(keepalive, method) => (
                format!(
                    "connections not reused, `{}` stands before {} (line {}), which replaces it",
                    spelt(keepalive),
                    method.name,
                    method.at.line
                ),
                format!("move keepalive below {}", method.name),
            ),
            Self::Limit(directive) => (
                format!("connections not reused, `{}` ends each after one request", spelt(directive)),
                format!("take `{}` out, or raise it", spelt(directive)),
            ),
            Self::Small(directive, kept, servers) => (
                format!("keeps {kept} idle connections for {servers} servers: fewer than servers, so most are closed"),
                match directive {
                    Some(_) => format!("keepalive {} or more: the number is for all servers together, in each worker", servers * 2),
                    None => format!("`keepalive {};` in the upstream block", servers * 2),
                },
            ),
            Self::Hidden(include) => (
                format!("whether connections are reused cannot be told: include {} was not seen", include.first()),
                "give the whole configuration: --root DIR for the file system it is in, or a dump of nginx -T".to_owned(),
            ),
        }
    }
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}
