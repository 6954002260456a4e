//! The types that are compressed at a place, and those that files have.

use crate::nginx::config::settings::Scope;
use crate::nginx::config::{Body, Directive, Place};
use std::collections::BTreeMap;

/// Types that come from files, with the short names that texts show.
const OF_FILES: [(&str, &str); 28] = [
    ("text/css", "css"),
    ("text/javascript", "js"),
    ("application/javascript", "js"),
    ("application/x-javascript", "js"),
    ("text/ecmascript", "js"),
    ("application/ecmascript", "js"),
    ("application/json", "json"),
    ("application/manifest+json", "json"),
    ("application/geo+json", "json"),
    ("application/ld+json", "json"),
    ("image/svg+xml", "svg"),
    ("text/xml", "xml"),
    ("application/xml", "xml"),
    ("application/rss+xml", "xml"),
    ("application/atom+xml", "xml"),
    ("application/xhtml+xml", "xhtml"),
    ("text/plain", "text"),
    ("text/markdown", "text"),
    ("text/x-component", "htc"),
    ("application/wasm", "wasm"),
    ("font/ttf", "fonts"),
    ("font/otf", "fonts"),
    ("font/eot", "fonts"),
    ("application/x-font-ttf", "fonts"),
    ("application/vnd.ms-fontobject", "fonts"),
    ("image/x-icon", "ico"),
    ("image/bmp", "bmp"),
    ("application/pdf", "pdf"),
];
/// Beginnings of types whose files are compressed as they are, and the exceptions.
const COMPRESSED: [&str; 14] = [
    "image/",
    "video/",
    "audio/",
    "application/zip",
    "application/gzip",
    "application/x-gzip",
    "application/x-7z-compressed",
    "application/x-rar",
    "application/x-bzip",
    "application/zstd",
    "font/woff",
    "application/font-woff",
    "application/x-font-woff",
    "application/java-archive",
];
const PLAIN_IMAGES: [&str; 5] =
    ["image/svg+xml", "image/x-icon", "image/bmp", "image/x-ms-bmp", "image/vnd.microsoft.icon"];

/// What is compressed at a place.
#[derive(Debug, Clone)]
pub struct Types {
    /// The `gzip_types` line; `None` where only text/html is.
    pub at: Option<Place>,
    /// The types named, in lower case.
    named: Vec<String>,
    /// Types of the file names known at the place.
    by_extension: BTreeMap<String, String>,
}

/// The types in force. An error is the include that was not seen and may set them.
pub fn of<'m>(scope: &Scope<'m>) -> Result<Types, &'m Directive> {
    let lines = scope.effective("gzip_types");
    if lines.set.is_empty()
        && let Some(include) = lines.hidden
    {
        return Err(include);
    }
    let named = lines.set.iter().flat_map(|line| &line.args).map(|name| name.to_ascii_lowercase()).collect();
    Ok(Types { at: lines.set.first().map(|line| line.at), named, by_extension: extensions(scope) })
}

/// Extensions and their types: the `types` block in force, or nginx's own three.
fn extensions(scope: &Scope<'_>) -> BTreeMap<String, String> {
    let blocks = scope.effective("types");
    let mut out = BTreeMap::new();
    for line in
        blocks.set.iter().filter(|block| matches!(block.body, Body::Keys(_))).flat_map(|block| block.keys())
    {
        for extension in &line.args {
            out.insert(extension.to_ascii_lowercase(), line.name.to_ascii_lowercase());
        }
    }
    if blocks.set.is_empty() {
        for (extension, kind) in [("html", "text/html"), ("gif", "image/gif"), ("jpg", "image/jpeg")] {
            out.insert(extension.to_owned(), kind.to_owned());
        }
    }
    out
}

impl Types {
    /// Short names of the compressed types that files have; empty where that is text/html alone.
    pub fn of_files(&self) -> Vec<&str> {
        let mut out = Vec::new();
        for name in &self.named {
            let known = OF_FILES.iter().find(|(kind, _)| kind == name).map(|(_, short)| *short);
            let short = if name == "*" {
                Some("files of every type")
            } else {
                known.or_else(|| {
                    self.by_extension.values().any(|kind| kind == name && name != "text/html").then_some(name)
                })
            };
            if let Some(short) = short.filter(|short| !out.contains(short)) {
                out.push(short);
            }
        }
        out
    }

    /// The types named that are compressed as they are.
    pub fn compressed_already(&self) -> Option<String> {
        let bad: Vec<&str> = self
            .named
            .iter()
            .map(String::as_str)
            .filter(|name| {
                *name == "*"
                    || (COMPRESSED.iter().any(|start| name.starts_with(start))
                        && !PLAIN_IMAGES.contains(name))
            })
            .collect();
        (!bad.is_empty()).then(|| bad.join(" "))
    }

    /// Whether a file of that name would be compressed.
    pub fn compresses(&self, file: &str) -> bool {
        let Some((_, extension)) = file.rsplit_once('.') else { return false };
        let Some(kind) = self.by_extension.get(&extension.to_ascii_lowercase()) else { return false };
        kind == "text/html" || self.named.iter().any(|name| name == "*" || name == kind)
    }
}
