//! Variables: what can be said of their values from the configuration alone.

use super::settings::Scope;
use super::{Directive, Model, Place};

/// Variables that name variables.
const MAX_STEPS: usize = 8;
/// Lines looked at for one text.
const MAX_LINES: usize = 10_000;

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Written as it is.
    Literal,
    /// A constant given by `set`.
    Set(Place),
    /// A row of a `map`, `geo` or `split_clients`.
    Row(Place),
}

/// One value that a text may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// The text.
    pub text: String,
    /// Where it comes from.
    pub origin: Origin,
    /// For a row of a `map`: whether it is the one for an empty source.
    pub for_empty: bool,
}

/// All values that a text may have, or the variable that hides them.
pub type Values = Result<Vec<Value>, String>;

/// If the whole text is one variable, its name.
pub fn variable(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?;
    let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
    (!name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')).then_some(name)
}

/// The names of the variables in a text.
pub fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.split('$').skip(1).filter_map(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        let end = rest.bytes().position(|b| !b.is_ascii_alphanumeric() && b != b'_').unwrap_or(rest.len());
        rest.get(..end).filter(|name| !name.is_empty())
    })
}

/// The values of a text at a place.
pub fn of(model: &Model, scope: &Scope<'_>, text: &str) -> Values {
    Resolver { model, scope, lines: 0 }.resolve(text, Origin::Literal, 0)
}

struct Resolver<'m, 's> {
    model: &'m Model,
    scope: &'s Scope<'m>,
    lines: usize,
}

impl Resolver<'_, '_> {
    fn resolve(&mut self, text: &str, origin: Origin, step: usize) -> Values {
        self.lines += 1;
        if !text.contains('$') {
            return Ok(vec![Value { text: text.to_owned(), origin, for_empty: false }]);
        }
        let name = variable(text).filter(|_| step < MAX_STEPS && self.lines < MAX_LINES);
        let Some(name) = name else { return Err(text.to_owned()) };
        let sets = sets(self.scope, name);
        let tables: Vec<&Directive> = self.model.tables(name).collect();
        if tables.is_empty() && sets.is_empty() {
            return Err(format!("${name}"));
        }
        let mut out = Vec::new();
        for set in sets {
            let value = set.args.get(1).map(String::as_str).unwrap_or_default();
            out.extend(self.resolve(value, Origin::Set(set.at), step + 1)?);
        }
        for table in tables {
            out.extend(self.rows(table, step)?);
        }
        Ok(out)
    }

    /// The values of a table.
    fn rows(&mut self, table: &Directive, step: usize) -> Values {
        let mut out = Vec::new();
        let mut default = None;
        let mut empty = None;
        for row in table.keys() {
            let value = row.args.first().map(String::as_str);
            match (row.name.as_str(), value) {
                ("include", Some(file)) => {
                    // Rows of a file that was seen follow as rows of their own.
                    if row.body == super::Body::Unseen {
                        return Err(format!("rows of {file}"));
                    }
                }
                ("delete" | "proxy", _) if table.name == "geo" => {}
                ("default", Some(value)) => default = Some((value, row.at)),
                (key, Some(value)) => {
                    let matches_empty = table.name == "map" && key_matches_empty(key);
                    if matches_empty && empty.is_none() {
                        empty = Some((value, row.at));
                    } else {
                        out.extend(self.resolve(value, Origin::Row(row.at), step + 1)?);
                    }
                }
                // `hostnames`, `volatile`, `ranges` and their like.
                (_, None) => {}
            }
        }
        let is_map = table.name == "map";
        let mut last = Vec::new();
        match empty {
            Some(row) => {
                last.push((row, true));
                last.extend(default.map(|row| (row, false)));
            }
            // Without a row for it an empty source gets the default, which is empty itself if none is given.
            None if is_map || table.name == "geo" => last.push((default.unwrap_or(("", table.at)), is_map)),
            None => {}
        }
        for ((value, at), for_empty) in last {
            for mut value in self.resolve(value, Origin::Row(at), step + 1)? {
                value.for_empty = for_empty;
                out.push(value);
            }
        }
        Ok(out)
    }
}

/// The `set` lines for a variable that may run before a place: those of its blocks, and of `if` blocks beside them.
fn sets<'m>(scope: &Scope<'m>, name: &str) -> Vec<&'m Directive> {
    let own = scope.all("set");
    let inner = scope.all("if").flat_map(Directive::children).filter(|d| d.name == "set");
    own.chain(inner).filter(|d| variable(d.first()) == Some(name)).collect()
}

/// Whether a key of a `map` matches an empty source, for which no regular expression is tried (`ngx_http_map_find`).
fn key_matches_empty(key: &str) -> bool {
    matches!(key, "" | "\\")
}

#[cfg(test)]
mod tests {
    use super::super::settings::{places, tests::parsed};
    use super::*;

    fn values(text: &str, wanted: &str) -> Result<Vec<(String, bool)>, String> {
        let model = parsed(text);
        let place = places(&model).remove(0);
        Ok(of(&model, &place, wanted)?.into_iter().map(|v| (v.text, v.for_empty)).collect())
    }

    fn pairs(list: &[(&str, bool)]) -> Vec<(String, bool)> {
        list.iter().map(|(text, empty)| ((*text).to_owned(), *empty)).collect()
    }

    #[test]
    fn constants_and_tables() {
        let text = "http { map $http_upgrade $c { default upgrade; '' close; }
            map $http_upgrade $d { default upgrade; } map $x $e { a 1; ~^$ 2; }
            map $x $f { ~.* 1; '' 2; }
            server { set $up backend; location / { set $again $up; if ($z) { set $again other; } } } }";
        assert_eq!(values(text, "close"), Ok(pairs(&[("close", false)])));
        assert_eq!(values(text, "$c"), Ok(pairs(&[("close", true), ("upgrade", false)])));
        assert_eq!(values(text, "${d}"), Ok(pairs(&[("upgrade", true)])));
        assert_eq!(values(text, "$e"), Ok(pairs(&[("1", false), ("2", false), ("", true)])));
        assert_eq!(values(text, "$f"), Ok(pairs(&[("1", false), ("2", true)])));
        // The first place is the `if` block itself.
        let all = values(text, "$again").unwrap();
        assert!(all.contains(&("backend".into(), false)) && all.contains(&("other".into(), false)));
        assert_eq!(values(text, "$host"), Err("$host".into()));
        assert_eq!(values(text, "a$up"), Err("a$up".into()));
    }

    #[test]
    fn circles_end() {
        assert!(values("http { server { set $a $b; set $b $a; location / { x; } } }", "$a").is_err());
    }

    #[test]
    fn names() {
        assert_eq!(variables("a$b-${c}d$e_1$$").collect::<Vec<_>>(), ["b", "c", "e_1"]);
        assert_eq!(variable("$a"), Some("a"));
        assert_eq!(variable("$a/"), None);
    }
}
