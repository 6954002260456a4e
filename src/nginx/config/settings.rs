//! What is in force at a place: nginx's inheritance from the outer blocks.

use super::{Body, Directive, Model};
use std::collections::HashMap;
use std::rc::Rc;

/// Files of these names are nginx's own examples and hold only directives of one kind; one that was not seen hides
/// nothing else.
const HARMLESS: [(&str, &str); 9] = [
    ("mime.types", "types"),
    ("fastcgi_params", "fastcgi_param"),
    ("fastcgi.conf", "fastcgi_param"),
    ("fastcgi-php.conf", "fastcgi_param"),
    ("uwsgi_params", "uwsgi_param"),
    ("scgi_params", "scgi_param"),
    ("koi-utf", "charset_map"),
    ("koi-win", "charset_map"),
    ("win-utf", "charset_map"),
];

/// The blocks a place stands in, outermost first: `http`, `server`, `location`, …
#[derive(Debug, Clone)]
pub struct Scope<'m> {
    /// The blocks; never empty.
    pub blocks: Vec<&'m Directive>,
    /// The directives of each block by name, shared by all places in it.
    indexes: Vec<Rc<Index<'m>>>,
}

/// The directives of one block.
#[derive(Debug, Default)]
struct Index<'m> {
    by_name: HashMap<&'m str, Vec<&'m Directive>>,
    unseen: Vec<&'m Directive>,
}

impl<'m> Index<'m> {
    fn of(block: &'m Directive) -> Self {
        let mut out = Self::default();
        for directive in block.children() {
            out.by_name.entry(&directive.name).or_default().push(directive);
            if directive.body == Body::Unseen {
                out.unseen.push(directive);
            }
        }
        out
    }

    fn all(&self, name: &str) -> &[&'m Directive] {
        self.by_name.get(name).map(Vec::as_slice).unwrap_or_default()
    }
}

/// What one directive comes to at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective<'m> {
    /// The directives in force, all of the same block; empty where none is given.
    pub set: Vec<&'m Directive>,
    /// An include that could not be seen and may change that.
    pub hidden: Option<&'m Directive>,
}

impl<'m> Effective<'m> {
    /// The last of them: for directives that take one value.
    pub fn one(&self) -> Option<&'m Directive> {
        self.set.last().copied()
    }
}

impl<'m> Scope<'m> {
    /// The innermost block.
    pub fn own(&self) -> Option<&'m Directive> {
        self.blocks.last().copied()
    }

    /// The innermost block of that name.
    pub fn block(&self, name: &str) -> Option<&'m Directive> {
        self.blocks.iter().rev().copied().find(|block| block.name == name)
    }

    /// What is in force of a directive: that of the innermost block which has any. Of directives that may stand several
    /// times, an inner block replaces all of the outer ones.
    pub fn effective(&self, name: &str) -> Effective<'m> {
        for index in self.indexes.iter().rev() {
            let set = index.all(name);
            let hidden = index.unseen.iter().copied().find(|include| may_hold(include, name));
            if !set.is_empty() || hidden.is_some() {
                return Effective { set: set.to_vec(), hidden };
            }
        }
        Effective { set: Vec::new(), hidden: None }
    }

    /// All directives of that name in the blocks around the place, outermost first, whether in force or not.
    pub fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'m Directive> + 's {
        self.indexes.iter().flat_map(move |index| index.all(name)).copied()
    }

    /// The directive in force of those with one argument; `Err` where an include that was not seen may set it.
    fn line(&self, name: &str) -> Result<Option<&'m Directive>, &'m Directive> {
        let found = self.effective(name);
        match (found.one(), found.hidden) {
            (Some(directive), _) => Ok(Some(directive)),
            (None, Some(hidden)) => Err(hidden),
            (None, None) => Ok(None),
        }
    }

    /// The value in force of a directive with one argument; `Err` where an include that was not seen may set it.
    pub fn value(&self, name: &str) -> Result<Option<&'m str>, &'m Directive> {
        Ok(self.line(name)?.map(Directive::first))
    }

    /// Whether a switch or enumeration is set to that word; `Err` where an include that was not seen may set it.
    pub fn says(&self, name: &str, word: &str) -> Result<bool, &'m Directive> {
        Ok(self.line(name)?.is_some_and(|line| line.says(word)))
    }

    /// Whether a switch is `on`, taking one that was not seen for off.
    pub fn is_on(&self, name: &str) -> bool {
        self.says(name, "on") == Ok(true)
    }
}

/// An include of a block that was not seen and may hold that directive.
pub fn unseen<'m>(block: &'m Directive, name: &str) -> Option<&'m Directive> {
    block.children().iter().find(|d| d.body == Body::Unseen && may_hold(d, name))
}

fn may_hold(include: &Directive, name: &str) -> bool {
    let file = include.first().rsplit('/').next().unwrap_or_default();
    HARMLESS.iter().find(|(harmless, _)| *harmless == file).is_none_or(|(_, holds)| *holds == name)
}

/// Every `server` of `http` and every `location` in it, each with the blocks around it; `if` and `limit_except` blocks are
/// places of their own, too, since a `*_pass` may stand in them.
pub fn places(model: &Model) -> Vec<Scope<'_>> {
    let mut out = Vec::new();
    for http in model.main.iter().filter(|d| d.name == "http") {
        let index = Rc::new(Index::of(http));
        for server in http.children().iter().filter(|d| d.name == "server") {
            let indexes = vec![Rc::clone(&index), Rc::new(Index::of(server))];
            descend(Scope { blocks: vec![http, server], indexes }, &mut out);
        }
    }
    out
}

fn descend<'m>(scope: Scope<'m>, out: &mut Vec<Scope<'m>>) {
    let children = scope.own().map(Directive::children).unwrap_or_default();
    for child in children {
        let is_place = matches!(child.name.as_str(), "location" | "if" | "limit_except");
        if is_place && matches!(child.body, Body::Block(_)) {
            let mut inner = scope.clone();
            inner.blocks.push(child);
            inner.indexes.push(Rc::new(Index::of(child)));
            descend(inner, out);
        }
    }
    out.push(scope);
}

/// The `upstream` blocks of `http`.
pub fn upstreams(model: &Model) -> impl Iterator<Item = &Directive> {
    model
        .main
        .iter()
        .filter(|d| d.name == "http")
        .flat_map(Directive::children)
        .filter(|d| d.name == "upstream" && matches!(d.body, Body::Block(_)))
}

/// How a location is called in texts: `location /api`, with the name of its server where it has one.
pub fn title(scope: &Scope<'_>) -> String {
    let server = scope.indexes.get(1).and_then(|server| server.all("server_name").first());
    let server = server.copied().map(Directive::first).filter(|name| !matches!(*name, "" | "_"));
    let own = scope.own();
    let what = match own.map(|own| own.name.as_str()) {
        Some("location") => format!("location {}", own.map(|own| own.args.join(" ")).unwrap_or_default()),
        Some("if" | "limit_except") => {
            let outer = scope.block("location").map(|l| format!(" in location {}", l.args.join(" ")));
            format!("{}{}", own.map(|own| own.name.clone()).unwrap_or_default(), outer.unwrap_or_default())
        }
        _ => "server".to_owned(),
    };
    match server {
        Some(name) => format!("{what} of {name}"),
        None => what,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The model of one text.
    pub(crate) fn parsed(text: &str) -> Model {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("nginx.conf");
        std::fs::write(&path, text).unwrap();
        Model::read(&path, Some(directory.path())).unwrap()
    }

    #[test]
    fn an_inner_block_replaces_all() {
        let model = parsed(
            "http { proxy_set_header A a; proxy_set_header Connection ''; gzip on;
               server { server_name x.org; location / { if ($a) { b; } } location /own { proxy_set_header H h; location /own/in { gzip off; } } } }",
        );
        let places = places(&model);
        let titles: Vec<String> = places.iter().map(title).collect();
        assert_eq!(
            titles,
            [
                "if in location / of x.org",
                "location / of x.org",
                "location /own/in of x.org",
                "location /own of x.org",
                "server of x.org"
            ]
        );
        let headers = |n: usize| places[n].effective("proxy_set_header").set.len();
        assert_eq!((headers(0), headers(1), headers(2), headers(3)), (2, 2, 1, 1));
        assert!(places[3].is_on("gzip") && !places[2].is_on("gzip"));
    }

    #[test]
    fn what_was_not_seen_may_change_it() {
        let model = parsed(
            "http { include mime.types; gzip on; server { location /a { include proxy_params; } location /b { include x; gzip off; } location /c { include fastcgi_params; } } }",
        );
        let places = places(&model);
        assert_eq!(places[0].value("proxy_http_version").unwrap_err().first(), "proxy_params");
        assert!(places[0].value("gzip").is_err());
        assert_eq!(places[1].value("gzip"), Ok(Some("off")));
        assert_eq!(places[2].value("gzip"), Ok(Some("on")));
        assert!(places[2].effective("fastcgi_param").hidden.is_some());
    }

    #[test]
    fn switches_and_enumerations_take_any_case() {
        let model = parsed("http { gzip ON; gzip_static Always; server { location / { gunzip Off; } } }");
        let place = &places(&model)[0];
        assert!(place.is_on("gzip") && !place.is_on("gunzip"));
        assert_eq!((place.says("gzip_static", "always"), place.says("gunzip", "off")), (Ok(true), Ok(true)));
        assert_eq!(place.says("ssi", "off"), Ok(false));
    }
}
