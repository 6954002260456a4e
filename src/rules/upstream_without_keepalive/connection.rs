//! What is in force where requests are passed: HTTP version and `Connection` header.

use super::spelt;
use crate::finding::Severity;
use crate::nginx::config::Directive;
use crate::nginx::config::settings::Scope;
use crate::nginx::config::values::{self, Value};
use crate::rules::config_common::View;

/// Why connections are not reused.
#[derive(Debug, Clone)]
pub enum Fault<'m> {
    /// They are not.
    Found {
        /// A word for the finding's identity.
        word: &'static str,
        /// In words that follow "connections not reused, ".
        message: String,
        /// What to do.
        remedy: String,
        /// No more than this.
        most: Option<Severity>,
    },
    /// The upstream would refuse the request.
    Refused {
        /// What happens.
        message: String,
        /// What to do.
        remedy: String,
    },
    /// Cannot be told; the reason.
    Open(String),
    /// Cannot be told, because of an include that was not seen.
    Hidden(&'m Directive),
}

impl Fault<'_> {
    /// A word for the finding's identity.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Found { word, .. } => word,
            Self::Refused { .. } => "refused",
            Self::Open(_) => "open",
            Self::Hidden(_) => "hidden",
        }
    }
}

/// What the `Connection` header sent to the upstream is.
enum Header<'m> {
    /// None is set, so nginx's default is in force; the line that drops an outer one, and that one.
    Default(Option<(&'m Directive, &'m Directive)>),
    /// These values, all of which may come.
    Values(&'m Directive, Vec<Value>),
    /// What the client sent.
    Client(&'m Directive),
    /// A variable that is known only at run time.
    Unknown(String),
    /// An include that was not seen may set it.
    Hidden(&'m Directive),
}

/// Rows 8, 9 and 13, for `proxy_pass`.
pub fn proxy<'m>(view: &View<'m>, scope: &Scope<'m>, new: bool) -> Option<Fault<'m>> {
    let version = match scope.value("proxy_http_version") {
        Ok(version) => version.unwrap_or(if new { "1.1" } else { "1.0" }),
        Err(hidden) => return Some(Fault::Hidden(hidden)),
    };
    let header = header(view, scope);
    if let Header::Hidden(include) = header {
        return Some(Fault::Hidden(include));
    }
    if version == "2" {
        return http2(view, &header);
    }
    let old = version == "1.0";
    let needs_version = if old { "`proxy_http_version 1.1;` and " } else { "" };
    let clear = |at: Option<&Directive>| match at {
        Some(line) => format!(
            "{needs_version}`proxy_set_header Connection \"\";` beside the proxy_set_header at {}",
            view.at(line.at)
        ),
        None => format!("{needs_version}`proxy_set_header Connection \"\";` in the location or outside it"),
    };
    let found =
        |word, message: String, remedy: String| Some(Fault::Found { word, message, remedy, most: None });
    match header {
        Header::Client(line) => Some(Fault::Found {
            word: "client",
            message: format!("unless the client asks for it: `{}` passes its header on", spelt(line)),
            remedy: format!(
                "{needs_version}`proxy_set_header Connection \"\";` in its place at {}",
                view.at(line.at)
            ),
            most: Some(Severity::Warning),
        }),
        Header::Values(line, values) => {
            let keeps = |value: &Value| {
                if old { has_token(&value.text, "keep-alive") } else { !has_token(&value.text, "close") }
            };
            let bad: Vec<&Value> = values.iter().filter(|value| !keeps(value)).collect();
            let first = bad.first()?;
            // A plain request is one whose Upgrade header is empty: the row for an empty source decides.
            let plain: Vec<&Value> = values.iter().filter(|value| value.for_empty).collect();
            if !plain.is_empty() && plain.iter().all(|value| keeps(value)) {
                return None;
            }
            if plain.is_empty() && bad.len() < values.len() {
                return Some(Fault::Open(format!("`{}` may come to `{}`", spelt(line), shown(&first.text))));
            }
            if old {
                return found(
                    "version",
                    format!("HTTP/1.0 is spoken and Connection is `{}`", shown(&first.text)),
                    clear(Some(line)),
                );
            }
            let row = bad.iter().find(|value| value.for_empty);
            if let (Some(row), values::Origin::Row(at)) = (row, row.map_or(first.origin, |row| row.origin)) {
                return found(
                    "map",
                    format!(
                        "the map gives Connection `{}` to requests without Upgrade ({})",
                        row.text,
                        view.at(at)
                    ),
                    format!("`'' '';` as the row of the map at {}", view.at(at)),
                );
            }
            found(
                "header",
                format!("`{}` is in force ({})", spelt(line), view.at(line.at)),
                format!("`proxy_set_header Connection \"\";` in its place at {}", view.at(line.at)),
            )
        }
        Header::Default(dropped) if old => {
            let own = scope.effective("proxy_http_version").one();
            let why = match own {
                Some(line) => format!("`{}` is in force ({})", spelt(line), view.at(line.at)),
                None => "HTTP/1.0 is spoken, the default".to_owned(),
            };
            found("version", why, clear(dropped.map(|(inner, _)| inner)))
        }
        // The new default sends no Connection header.
        Header::Default(_) if new => None,
        Header::Default(Some((inner, outer))) => found(
            "dropped",
            format!(
                "{} drops Connection \"{}\" ({}): any proxy_set_header replaces all outer ones",
                where_it_is(scope, inner),
                outer.args.get(1).map(String::as_str).unwrap_or_default(),
                view.at(outer.at),
            ),
            clear(Some(inner)),
        ),
        Header::Default(None) => {
            found("default", "Connection is `close`, the default".to_owned(), clear(None))
        }
        Header::Unknown(why) => Some(Fault::Open(why)),
        Header::Hidden(include) => Some(Fault::Hidden(include)),
    }
}

/// Row 13: HTTP/2 to the upstream keeps connections, and refuses the header.
fn http2<'m>(view: &View<'m>, header: &Header<'m>) -> Option<Fault<'m>> {
    let Header::Values(line, values) = header else { return None };
    values.iter().any(|value| has_token(&value.text, "close")).then(|| Fault::Refused {
        message: "HTTP/2 has no Connection header; upstreams answer 400 to `Connection close`".to_owned(),
        remedy: format!("take out `{}` at {}", spelt(line), view.at(line.at)),
    })
}

/// Row 11.
pub fn fastcgi<'m>(scope: &Scope<'m>) -> Option<Fault<'m>> {
    match scope.says("fastcgi_keep_conn", "on") {
        Ok(true) => None,
        Ok(false) => Some(Fault::Found {
            word: "keep-conn",
            message: "fastcgi_keep_conn is off".to_owned(),
            remedy: "`fastcgi_keep_conn on;` where the requests are passed".to_owned(),
            most: None,
        }),
        Err(hidden) => Some(Fault::Hidden(hidden)),
    }
}

fn header<'m>(view: &View<'m>, scope: &Scope<'m>) -> Header<'m> {
    let headers = scope.effective("proxy_set_header");
    let is_connection = |d: &&&'m Directive| d.first().eq_ignore_ascii_case("connection");
    let lines: Vec<&Directive> = headers.set.iter().filter(is_connection).copied().collect();
    let Some(last) = lines.last() else {
        if let Some(hidden) = headers.hidden {
            return Header::Hidden(hidden);
        }
        let dropped = headers.set.first().and_then(|inner| Some((*inner, outer(scope, inner)?)));
        return Header::Default(dropped);
    };
    let mut all = Vec::new();
    for line in &lines {
        let value = line.args.get(1).map(String::as_str).unwrap_or_default();
        if values::variable(value).is_some_and(|name| name.eq_ignore_ascii_case("http_connection")) {
            return Header::Client(line);
        }
        match values::of(view.model, scope, value) {
            Ok(values) => all.extend(values),
            Err(variable) => {
                return Header::Unknown(format!("`{}`: {variable} is known only at run time", spelt(line)));
            }
        }
    }
    Header::Values(last, all)
}

/// The `Connection` line of an outer block that an inner `proxy_set_header` drops.
fn outer<'m>(scope: &Scope<'m>, inner: &Directive) -> Option<&'m Directive> {
    let mut blocks = scope.blocks.iter().rev();
    blocks.find(|block| block.children().iter().any(|d| std::ptr::eq(d, inner)))?;
    blocks
        .flat_map(|block| block.children())
        .find(|d| d.name == "proxy_set_header" && d.first().eq_ignore_ascii_case("connection"))
}

fn where_it_is(scope: &Scope<'_>, inner: &Directive) -> &'static str {
    match scope.around(inner).and_then(|around| around.own()).map(|block| block.name.as_str()) {
        Some("server") => "the server",
        _ => "the location",
    }
}

fn has_token(value: &str, token: &str) -> bool {
    value.split(',').any(|part| part.trim().eq_ignore_ascii_case(token))
}

fn shown(value: &str) -> &str {
    if value.is_empty() { "\"\"" } else { value }
}
