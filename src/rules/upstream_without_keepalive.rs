//! nginx opens a new connection to the upstream for every request.
//!
//! # What it checks
//!
//! Every `proxy_pass`, `grpc_pass`, `fastcgi_pass` and `memcached_pass` of a configuration (`--nginx-conf`) together with the
//! upstream it leads to: whether that build of nginx would use a connection again. It takes the `keepalive` of the
//! upstream and what is in force at the location: HTTP version and `Connection` header.
//!
//! ```text
//! warning[upstream-without-keepalive]: proxy_pass → backend: connections not reused, the location drops Connection ""
//!   where   /etc/nginx/conf.d/api.conf:14:9
//!   fix     put `proxy_set_header Connection "";` beside the proxy_set_header at api.conf:15
//! ```
//!
//! # Why it matters
//!
//! A connection for each request costs a round trip (several with TLS), a port, and work on both sides. In one measurement
//! a gateway answered 6,301 requests a second without upstream keepalive and 21,923 with it.
//!
//! # How to fix
//!
//! In the upstream `keepalive 32;` below the load-balancing method, and where the requests are passed
//! `proxy_http_version 1.1;` and `proxy_set_header Connection "";`. From nginx 1.29.7 on both are the default for upstream
//! blocks. One `proxy_set_header` in a location replaces all that were set outside it.
//!
//! # Policy keys
//!
//! `rules.upstream-without-keepalive`; it is also checked whenever a configuration is given.
//!
//! # Evidence
//!
//! The configuration, and from the binary whether upstreams keep connections by default (the arguments its `keepalive`
//! directive takes).
//!
//! # Limits
//!
//! Upstreams of `stream`, `uwsgi_pass` and `scgi_pass` never keep connections and are not judged, nor are upstreams that
//! nothing passes to. A variable is followed through `set`, `map` and `split_clients`; any other is said to be undetermined, as
//! is a balancer in Lua. Whether the upstream itself closes connections is not seen.

use super::Rule;
use super::check::{Context, Draft, Outcome, listed};
use super::config_common::{View, view};
use crate::evidence::{Source, Strength};
use crate::finding::Severity;
use crate::nginx::config::values::Origin;
use crate::nginx::config::{Directive, Place, settings};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

mod connection;
mod pairs;
mod pool;

use connection::Fault;
use pairs::{Pair, Protocol, Target};
use pool::{Cause, Pool};

/// The rule.
pub const RULE: Rule = Rule {
    id: "upstream-without-keepalive",
    severity: Severity::Warning,
    keys: &["rules.upstream-without-keepalive"],
    source: include_str!("upstream_without_keepalive.rs"),
    check,
};

/// What was measured, and no more.
const COST: &str =
    "measured on a gateway: 6,301 requests a second without upstream keepalive, 21,923 with it";

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let view = match view(context, RULE.id) {
        Ok(view) => view,
        Err(outcome) => return outcome,
    };
    let mut judge = Judge {
        view,
        new: view.keeps_by_default(),
        drafts: Vec::new(),
        pools: BTreeMap::new(),
        addresses: HashSet::new(),
        read: HashMap::new(),
    };
    for pair in pairs::all(view.model) {
        judge.pair(&pair);
    }
    judge.finish_pools();
    view.outcome(judge.drafts)
}

/// Findings about an upstream, with the places that pass to it.
struct PoolFinding<'a> {
    pool: Rc<Pool<'a>>,
    cause: Cause<'a>,
    pairs: Vec<(String, String, String)>,
    only_fpm: bool,
}

struct Judge<'a> {
    view: View<'a>,
    /// Whether upstreams keep connections by default; `None` if unknown.
    new: Option<bool>,
    drafts: Vec<Draft<'a>>,
    pools: BTreeMap<(String, &'static str), PoolFinding<'a>>,
    addresses: HashSet<String>,
    /// Upstream blocks read so far, by where they stand.
    read: HashMap<Place, Rc<Pool<'a>>>,
}

impl<'a> Judge<'a> {
    fn pair(&mut self, pair: &Pair<'a>) {
        let new = self.new.unwrap_or(false);
        let passes = format!("{} → {}", pair.pass.name, pair.shown);
        match &pair.target {
            Target::Unknown(why) => self.push(
                pair,
                Draft::undetermined(
                    format!("pass:{}:{}", settings::identity(self.view.model, &pair.scope), pair.shown),
                    format!("{passes}: whether connections are reused cannot be told, {why}"),
                )
                .remedy("pass to an upstream block by its name")
                .at_most(Severity::Warning),
            ),
            Target::Hidden(include) => {
                let what = format!("{passes}: whether that is an upstream block which keeps connections");
                let key = format!("address:{}", pair.shown);
                if self.addresses.insert(key.clone()) {
                    self.drafts.push(self.view.hidden(key, &what, include));
                }
            }
            Target::Address(origin) => self.address(pair, &passes, *origin),
            Target::Upstream(block) => {
                let pool = self.read.entry(block.at).or_insert_with(|| Rc::new(Pool::read(block)));
                let pool = Rc::clone(pool);
                if let Some(cause) = pool.fault(&self.view, new) {
                    self.blame_pool(pair, &pool, cause, new);
                    return;
                }
                self.location(pair, &pool, &passes, new);
            }
        }
    }

    /// Row 2, 3b and 11: the target is no upstream block.
    fn address(&mut self, pair: &Pair<'a>, passes: &str, origin: Origin) {
        let key = format!("address:{}", pair.shown);
        let message = format!(
            "{passes}: connections not reused, a bare address keeps none: it needs an upstream block"
        );
        let remedy = format!(
            "upstream NAME {{ server {}; keepalive 32; }} in http, and pass to NAME{}",
            pair.shown,
            if pair.protocol == Protocol::Proxy && self.new != Some(true) {
                " with `proxy_http_version 1.1;` and `proxy_set_header Connection \"\";`"
            } else if pair.protocol == Protocol::Fastcgi {
                " with `fastcgi_keep_conn on;`"
            } else {
                ""
            }
        );
        let draft = match (origin, pair.protocol) {
            (Origin::Row(_), _) => Draft::undetermined(
                key,
                format!("{passes}: whether connections are reused cannot be told, the variable may be a bare address"),
            )
            .at_most(Severity::Warning),
            (_, Protocol::Fastcgi) => {
                let draft = Draft::violation(key, message).cost(COST);
                if pair.is_fpm { draft.severity(Severity::Note).at_most(Severity::Note) } else { draft }
            }
            _ => Draft::violation(key, message).at_most(Severity::Warning).cost(COST),
        };
        // One address is one fact, however many places pass to it.
        if !self.addresses.insert(draft.key.clone()) {
            return;
        }
        self.push(pair, draft.remedy(remedy));
    }

    /// Rows 8 to 13, 14 and 16: what is in force where the requests are passed.
    fn location(&mut self, pair: &Pair<'a>, pool: &Rc<Pool<'a>>, passes: &str, new: bool) {
        let fault = match pair.protocol {
            Protocol::Proxy => connection::proxy(&self.view, &pair.scope, new),
            Protocol::Fastcgi => connection::fastcgi(&pair.scope),
            Protocol::Grpc | Protocol::Memcached => None,
        };
        let name = pool.block.first();
        let place = settings::identity(self.view.model, &pair.scope);
        // Another cause at the same place is another finding.
        let key = format!("pass:{place}:{name}:{}", fault.as_ref().map_or("lua", Fault::word));
        match fault {
            Some(Fault::Hidden(include)) => {
                let what = format!("{passes}: whether connections are reused");
                let draft = self.view.hidden(key, &what, include);
                self.drafts.push(draft.upstream(name));
            }
            Some(Fault::Open(why)) => {
                let message = format!("{passes}: whether connections are reused cannot be told, {why}");
                let draft = Draft::undetermined(key, message)
                    .remedy("set the Connection header to \"\" where requests are passed")
                    .at_most(Severity::Warning);
                self.push(pair, draft.upstream(name));
            }
            Some(Fault::Found { message, remedy, most, .. }) => {
                let mut draft = self.certain(key, format!("{passes}: connections not reused, {message}"));
                if pair.is_fpm {
                    draft = draft.severity(Severity::Note).at_most(Severity::Note);
                } else if let Some(most) = most {
                    draft = draft.at_most(most);
                }
                self.push(pair, draft.remedy(remedy).cost(COST).upstream(name));
            }
            Some(Fault::Refused { message, remedy }) => {
                let draft = Draft::violation(key, format!("{passes}: {message}")).severity(Severity::Error);
                self.push(pair, draft.remedy(remedy).upstream(name));
            }
            None if pool.lua.is_some() => {
                let message =
                    format!("{passes}: whether connections are reused is up to the balancer in Lua");
                self.push(pair, Draft::undetermined(key, message).at_most(Severity::Warning).upstream(name));
            }
            None => {
                if let Some(cause) = pool.small(new) {
                    self.blame_pool(pair, pool, cause, new);
                }
            }
        }
    }

    /// Remembers a fault of an upstream; all that pass to it share one finding.
    fn blame_pool(&mut self, pair: &Pair<'a>, pool: &Rc<Pool<'a>>, cause: Cause<'a>, new: bool) {
        let place = self.view.at(pair.pass.at);
        let also = match pair.protocol {
            Protocol::Proxy => connection::proxy(&self.view, &pair.scope, new),
            Protocol::Fastcgi => connection::fastcgi(&pair.scope),
            Protocol::Grpc | Protocol::Memcached => None,
        };
        let also = match also {
            Some(Fault::Found { remedy, .. }) => remedy,
            _ => String::new(),
        };
        let name = pool.block.first().to_ascii_lowercase();
        let only_fpm = pair.is_fpm;
        let entry = self.pools.entry((name, cause.word())).or_insert(PoolFinding {
            pool: Rc::clone(pool),
            cause,
            pairs: Vec::new(),
            only_fpm: true,
        });
        entry.only_fpm &= only_fpm;
        entry.pairs.push((pair.pass.name.clone(), place, also));
    }

    fn finish_pools(&mut self) {
        for ((name, word), found) in std::mem::take(&mut self.pools) {
            let title = found.pool.block.first();
            let from = listed(found.pairs.iter().map(|(pass, place, _)| format!("{pass} at {place}")), 5);
            let (text, mut remedy) = found.cause.texts(&self.view);
            let mut also: Vec<&str> = found
                .pairs
                .iter()
                .map(|(_, _, also)| also.as_str())
                .filter(|also| !also.is_empty())
                .collect();
            also.dedup();
            if let Some(first) = also.first() {
                remedy = format!("{remedy}; {first}");
            }
            let key = format!("upstream:{name}:{word}");
            let mut draft = if found.cause.is_hidden() {
                Draft::undetermined(key, format!("upstream {title}: {text}")).at_most(Severity::Warning)
            } else {
                self.certain(key, format!("upstream {title}: {text}"))
            };
            if found.cause.is_small() {
                draft = draft.at_most(Severity::Warning);
            }
            if found.only_fpm && !found.cause.is_hidden() {
                draft = draft.severity(Severity::Note).at_most(Severity::Note);
            }
            if !found.cause.is_small() && !found.cause.is_hidden() {
                draft = draft.cost(COST);
            }
            let at = found.cause.at().unwrap_or(found.pool.block.at);
            self.drafts.push(
                self.evidence(draft)
                    .location(self.view.model.location(at))
                    .upstream(title)
                    .remedy(remedy)
                    .known(vec![format!("passed to by {from}")]),
            );
        }
    }

    /// A violation, or an open question where it depends on a default that is not known.
    fn certain(&self, key: String, message: String) -> Draft<'a> {
        if self.new.is_some() {
            Draft::violation(key, message)
        } else {
            Draft::undetermined(
                key,
                format!("{message} (unless this is nginx 1.29.7 or newer, which cannot be told)"),
            )
        }
    }

    fn evidence(&self, draft: Draft<'a>) -> Draft<'a> {
        match self.view.nginx.features.get("upstream_keepalive_default") {
            Some(held) => draft.held(held),
            None => draft.evidence(Strength::Declared, &[Source::BuildString]),
        }
    }

    fn push(&mut self, pair: &Pair<'a>, draft: Draft<'a>) {
        let draft = self.evidence(draft).location(self.view.model.location(pair.pass.at));
        self.drafts.push(draft);
    }
}

/// A directive's words as written, for texts.
fn spelt(directive: &Directive) -> String {
    let mut out = directive.name.clone();
    for word in &directive.args {
        out.push(' ');
        if word.is_empty() || word.contains(char::is_whitespace) {
            out.push('"');
            out.push_str(word);
            out.push('"');
        } else {
            out.push_str(word);
        }
    }
    out
}

#[cfg(test)]
mod tests;
