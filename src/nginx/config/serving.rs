//! Which places serve files.

use super::settings::{Scope, places, unseen};
use super::{Directive, Model};
use std::collections::HashMap;

/// Directives that answer a request themselves, besides all that end in `_pass`.
const HANDLERS: [&str; 22] = [
    "return",
    "empty_gif",
    "stub_status",
    "perl",
    "js_content",
    "content_by_lua",
    "content_by_lua_file",
    "content_by_lua_block",
    "mruby_content_handler",
    "mruby_content_handler_code",
    "echo",
    "api",
    "status",
    "prometheus",
    "hls",
    "f4f",
    "vhost_traffic_status_display",
    "check_status",
    "nchan_pubsub",
    "nchan_subscriber",
    "nchan_publisher",
    "passenger_enabled",
];

/// Places that serve files for want of a content handler: locations, nested ones too (a handler is not inherited), and of
/// a server without a location for `/` what no other location takes.
pub fn file_places(model: &Model) -> Vec<Scope<'_>> {
    let mut servers: HashMap<super::Place, bool> = HashMap::new();
    let mut open = |scope: &Scope<'_>| {
        let server = scope.block("server")?;
        Some(!*servers.entry(server.at).or_insert_with(|| answers_all(server)))
    };
    places(model).into_iter().filter(|scope| serves_files(scope) && open(scope) == Some(true)).collect()
}

fn serves_files(scope: &Scope<'_>) -> bool {
    let Some(own) = scope.own() else { return false };
    match own.name.as_str() {
        "location" => !answers_all(own) && !refuses_all(own) && unseen(own, "proxy_pass").is_none(),
        "server" => !own.children().iter().any(takes_all) && unseen(own, "location").is_none(),
        _ => false,
    }
}

/// Whether a block answers every request itself, or hands it on to another place.
fn answers_all(block: &Directive) -> bool {
    let answers = |d: &Directive| {
        let name = d.name.as_str();
        (name.ends_with("_pass") && name != "auth_basic_pass") || (HANDLERS.contains(&name) && !d.says("off"))
    };
    // What ends the rewriting above a `rewrite` lets requests stay.
    let mut rewriting = block.children().iter().take_while(|d| !ends_rewriting(d));
    block.children().iter().any(answers) || rewriting.any(|d| d.name == "rewrite" && leads_away(d, block))
}

/// Whether a `rewrite` takes every request away from its block: to the client, or from a location to the one for the new
/// path.
fn leads_away(rewrite: &Directive, block: &Directive) -> bool {
    let flag = rewrite.args.get(2).map(String::as_str);
    let target = rewrite.args.get(1).map(String::as_str).unwrap_or_default();
    matches_everything(rewrite.first())
        && (matches!(flag, Some("permanent" | "redirect"))
            || ["http://", "https://", "$scheme"].iter().any(|start| target.starts_with(start))
            || (block.name == "location" && flag != Some("break")))
}

/// Whether no `rewrite` below a line is run where it is: `break`, and a `rewrite` with that flag, which may
/// stand in an `if`.
fn ends_rewriting(line: &Directive) -> bool {
    match line.name.as_str() {
        "break" => true,
        "rewrite" => line.args.get(2).is_some_and(|flag| flag == "break"),
        "if" => line.children().iter().any(ends_rewriting),
        _ => false,
    }
}

/// Whether a pattern matches every path.
fn matches_everything(pattern: &str) -> bool {
    let (rest, is_open) = match pattern.strip_suffix('$') {
        Some(rest) => (rest, false),
        None => (pattern, true),
    };
    let rest = rest.strip_prefix('^').unwrap_or(rest);
    let below = rest.strip_prefix('/').unwrap_or(rest);
    let inner = below.strip_prefix('(').and_then(|group| group.strip_suffix(')')).unwrap_or(below);
    match inner {
        "" => is_open,
        ".*" => true,
        // A path is never empty; what comes after its first slash is, for `/`.
        ".+" => below.len() == rest.len(),
        _ => false,
    }
}

/// `deny all` without an exception: nothing is served.
fn refuses_all(block: &Directive) -> bool {
    let has = |name: &str| block.children().iter().any(|d| d.name == name);
    block.children().iter().any(|d| d.name == "deny" && d.first() == "all")
        && !has("allow")
        && !has("satisfy")
}

/// Whether a location takes every path that no other takes.
fn takes_all(location: &Directive) -> bool {
    if location.name != "location" {
        return false;
    }
    let words: Vec<&str> = location.args.iter().map(String::as_str).collect();
    match words[..] {
        ["/"] | ["^~", "/"] => true,
        ["~" | "~*", pattern] => matches_everything(pattern),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::{tests::parsed, title};
    use super::*;

    fn served(text: &str) -> Vec<String> {
        file_places(&parsed(text)).iter().map(title).collect()
    }

    #[test]
    fn handlers_are_not_inherited() {
        let text = "http { server { location / { proxy_pass http://x; location /static { } } location /lua { content_by_lua_block { } }
            location ~ /\\.ht { deny all; } location /inner { internal; } location /try { try_files $uri @app; } } }";
        assert_eq!(served(text), ["location /static", "location /inner", "location /try"]);
    }

    #[test]
    fn a_server_without_a_location_for_everything() {
        assert_eq!(served("http { server { listen 80; } }"), ["server"]);
        assert_eq!(served("http { server { location /api { proxy_pass http://x; } } }"), ["server"]);
        assert!(
            served("http { server { return 301 https://$host$request_uri; location /x { } } }").is_empty()
        );
        assert!(served("http { server { rewrite ^ https://x$request_uri? permanent; } }").is_empty());
        assert!(served("http { server { location ~ ^/(.*)$ { fastcgi_pass x; } } }").is_empty());
        assert!(served("http { server { include gone; } }").is_empty());
        assert_eq!(served("http { server { rewrite ^/a /b permanent; location / { } } }"), ["location /"]);
        assert_eq!(served("http { server { location ~ ^/$ { fastcgi_pass x; } } }"), ["server"]);
    }

    #[test]
    fn what_a_rewrite_leads_away_is_not_served() {
        let location = |lines: &str| served(&format!("http {{ server {{ location / {{ {lines} }} }} }}"));
        for away in
            ["rewrite ^ /index.php last;", "rewrite ^/(.*) http://x/$1;", "rewrite ^(.+)$ /i.php?q=$1;"]
        {
            assert!(location(away).is_empty(), "{away}");
        }
        for stays in [
            "rewrite ^ /index.html break;",
            "rewrite ^/a/(.*)$ /b/$1 last;",
            "rewrite ^/$ /index.html last;",
            "if (-f $request_filename) { break; } rewrite ^ /index.php last;",
            "rewrite ^/a /b break; rewrite ^ http://x permanent;",
        ] {
            assert_eq!(location(stays), ["location /"], "{stays}");
        }
        // Of a server it chooses the location anew.
        let server = "http { server { rewrite ^ /index.html last; location / { } } }";
        assert_eq!(served(server), ["location /"]);
    }
}
