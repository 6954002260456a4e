//! What is in force at a place: nginx's inheritance from the outer blocks.

use super::{Body, Directive, Model, Place};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
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

    /// The block of those around the place in which a directive stands, with the blocks around that.
    pub fn around(&self, directive: &Directive) -> Option<Self> {
        let holds = |block: &Directive| block.children().iter().any(|child| std::ptr::eq(child, directive));
        let end = self.blocks.iter().rposition(|block| holds(block))? + 1;
        Some(Self { blocks: self.blocks.get(..end)?.to_vec(), indexes: self.indexes.get(..end)?.to_vec() })
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
        Some(name) => name.to_owned(),
        None => String::new(),
    };
    match server {
        Some(name) => format!("{what} of {name}"),
        None => what,
    }
}

/// Names of places that their titles do not tell apart, by the places of the blocks they stand in.
pub type Names = HashMap<Vec<Place>, String>;

/// What a place is called in a finding's identity: its title and, where another place has the same one, what its server
/// listens on, all names of that, the locations around the place, and at last a number. No line enters, so that a change
/// above it makes no other place of it.
pub fn identity(model: &Model, scope: &Scope<'_>) -> String {
    let names = model.names.get_or_init(|| ambiguous(model));
    names.get(&standing(scope)).cloned().unwrap_or_else(|| title(scope))
}

fn standing(scope: &Scope<'_>) -> Vec<Place> {
    scope.blocks.iter().map(|block| block.at).collect()
}

fn ambiguous(model: &Model) -> Names {
    let places = places(model);
    let mut titles: HashMap<String, Vec<&Scope<'_>>> = HashMap::new();
    for scope in &places {
        titles.entry(title(scope)).or_default().push(scope);
    }
    let mut out = Names::new();
    for (title, scopes) in titles.into_iter().filter(|(_, scopes)| scopes.len() > 1) {
        // Those of one title come in the order of the text, and so do the numbers.
        let mut taken: HashMap<String, u32> = HashMap::new();
        for scope in scopes {
            let Entry::Vacant(entry) = out.entry(standing(scope)) else { continue };
            let name = format!("{title}{}", surroundings(scope));
            let number = taken.entry(name.clone()).or_insert(0);
            *number += 1;
            entry.insert(if *number == 1 { name } else { format!("{name}, {number}") });
        }
    }
    out
}

/// What tells a place from others of the same title.
fn surroundings(scope: &Scope<'_>) -> String {
    let server = scope.indexes.get(1);
    let all = |name: &str| server.map(|index| index.all(name)).unwrap_or_default().iter();
    let plain = |address: &str| {
        let address = address.strip_prefix("*:").or_else(|| address.strip_prefix("0.0.0.0:"));
        address.map(str::to_owned)
    };
    let mut listens: Vec<String> = all("listen")
        .map(|line| plain(line.first()).unwrap_or_else(|| line.first().to_ascii_lowercase()))
        .collect();
    let mut names: Vec<String> =
        all("server_name").flat_map(|line| &line.args).map(|name| name.to_ascii_lowercase()).collect();
    for list in [&mut listens, &mut names] {
        list.sort_unstable();
        list.dedup();
    }
    let inner = scope.blocks.iter().skip(2);
    let mut inner: Vec<String> =
        inner.map(|block| format!("{} {}", block.name, block.args.join(" "))).collect();
    // A location of the server itself is told by its title.
    inner.retain(|_| scope.blocks.len() > 3);
    let parts = [("listen", listens), ("names", names), ("in", inner)];
    let shown = |(word, list): (&str, Vec<String>)| {
        if list.is_empty() { String::new() } else { format!(", {word} {}", list.join(" ")) }
    };
    parts.map(shown).concat()
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
    fn places_of_one_title_have_names_of_their_own() {
        let text = "http { server { server_name x; listen 80; location / { } }
            server { server_name x X.org; listen *:443 ssl; location / { location /a { } } location /b { location /a { if ($a) { } if ($b) { } } } }
            server { listen 1; } server { listen 1; } server { server_name y; } }";
        let model = parsed(text);
        let names: Vec<String> = places(&model).iter().map(|place| identity(&model, place)).collect();
        assert_eq!(
            names,
            [
                "location / of x, listen 80, names x",
                "server of x, listen 80, names x",
                "location /a of x, listen 443, names x x.org, in location / location /a",
                "location / of x, listen 443, names x x.org",
                "if in location /a of x, listen 443, names x x.org, in location /b location /a if ($a)",
                "if in location /a of x, listen 443, names x x.org, in location /b location /a if ($b)",
                "location /a of x, listen 443, names x x.org, in location /b location /a",
                "location /b of x",
                "server of x, listen 443, names x x.org",
                "server, listen 1",
                "server, listen 1, 2",
                "server of y",
            ]
        );
        let moved = parsed(&format!("\n\n{text}"));
        let after: Vec<String> = places(&moved).iter().map(|place| identity(&moved, place)).collect();
        assert_eq!(after, names);
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
