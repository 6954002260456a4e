//! Container images: which archives inside an archive are layers, and in what order.

use super::contents::{self, Contents, Found, clean};
use super::tree::Tree;
use super::{Kind, kind, stream};
use crate::limits::Limits;
use serde::Deserialize;
use std::collections::HashMap;

/// Most layers of one image (Docker allows 127).
const MOST_LAYERS: usize = 512;
/// Most images in one archive.
const MOST_IMAGES: usize = 64;
/// Largest manifest, in bytes.
const MOST_MANIFEST: u64 = 8 << 20;
/// How deep an index of OCI may point to another.
const MOST_INDICES: usize = 3;

/// `manifest.json` of `docker save`.
#[derive(Deserialize)]
struct Saved {
    #[serde(rename = "Layers", default)]
    layers: Vec<String>,
    #[serde(rename = "RepoTags", default)]
    tags: Option<Vec<String>>,
}

/// An index or a manifest of OCI.
#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    manifests: Vec<Descriptor>,
    #[serde(default)]
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Descriptor {
    digest: String,
}

impl Descriptor {
    /// The blob's name. A digest that is no digest names nothing.
    fn name(&self) -> Option<String> {
        let (algorithm, hash) = self.digest.split_once(':')?;
        let plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        (plain(algorithm) && plain(hash)).then(|| format!("/blobs/{algorithm}/{hash}"))
    }
}

/// The file tree of a container image, or `None` if the archive is none. Of several images each has its own tree,
/// and the names begin with the image's.
pub(super) fn image(outer: &Contents, limits: &Limits) -> Option<Contents> {
    let by_name: HashMap<&str, &Found> =
        outer.found.iter().map(|found| (found.name.as_str(), found)).collect();
    let images = saved(&by_name).or_else(|| indexed(&by_name))?;
    let mut all = Contents::default();
    let mut ids = 0;
    let several = images.len() > 1;
    for (tag, layers) in images {
        let mut tree = Tree::default();
        for layer in layers.iter().take(MOST_LAYERS) {
            let contents = match by_name.get(layer.as_str()) {
                None => Contents::damaged(format!("the layer {layer} is missing")),
                Some(found) => match &found.bytes {
                    Err(why) => Contents::damaged(format!("the layer {layer}: {why}")),
                    Ok(input) => match kind(input) {
                        Some(Kind::Tar) => contents::of_plain(input, limits),
                        _ => match stream::open(input, limits) {
                            Ok(stream) => contents::of_stream(stream, limits),
                            Err(error) => Contents::damaged(format!("the layer {layer}: {error}")),
                        },
                    },
                },
            };
            if contents.not_an_archive || contents.single.is_some() {
                all.found.extend(Contents::damaged(format!("the layer {layer} is no archive")).found);
                continue;
            }
            all.skipped += contents.skipped;
            // What was refused stays refused, whatever upper layers do.
            all.found.extend(contents.found.iter().filter(|found| found.bytes.is_err()).cloned());
            tree.lay(&contents, &mut ids);
        }
        let files = tree.into_found().into_iter().filter(|found| found.bytes.is_ok());
        let prefix = if several { format!("{tag}!") } else { String::new() };
        all.found.extend(files.map(|found| Found { name: format!("{prefix}{}", found.name), ..found }));
    }
    Some(all)
}

fn json<T: for<'a> Deserialize<'a>>(by_name: &HashMap<&str, &Found>, name: &str) -> Option<T> {
    let input = by_name.get(name)?.bytes.as_ref().ok()?;
    let bytes = input.read_vec(0, input.len(), MOST_MANIFEST, "manifest").ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Images as `docker save` lists them.
fn saved(by_name: &HashMap<&str, &Found>) -> Option<Vec<(String, Vec<String>)>> {
    let list: Vec<Saved> = json(by_name, "/manifest.json")?;
    let images = list.into_iter().take(MOST_IMAGES).enumerate().map(|(index, image)| {
        let tag = image.tags.unwrap_or_default().into_iter().next();
        let layers = image.layers.iter().filter_map(|layer| clean(layer.as_bytes()).ok()).collect();
        (tag.unwrap_or_else(|| format!("image {}", index + 1)), layers)
    });
    let images: Vec<_> = images.filter(|(_, layers): &(String, Vec<String>)| !layers.is_empty()).collect();
    (!images.is_empty()).then_some(images)
}

/// Images of an OCI layout.
fn indexed(by_name: &HashMap<&str, &Found>) -> Option<Vec<(String, Vec<String>)>> {
    let mut pending: Vec<(String, usize)> = vec![("/index.json".to_owned(), 0)];
    let mut images = Vec::new();
    json::<Manifest>(by_name, "/index.json")?;
    while let Some((name, depth)) = pending.pop() {
        let Some(manifest) = json::<Manifest>(by_name, &name) else { continue };
        if depth < MOST_INDICES {
            let next = manifest.manifests.iter().take(MOST_IMAGES).filter_map(Descriptor::name);
            pending.extend(next.map(|name| (name, depth + 1)));
        }
        if !manifest.layers.is_empty() && images.len() < MOST_IMAGES {
            let layers = manifest.layers.iter().filter_map(Descriptor::name).collect();
            let digest = name.rsplit('/').next().unwrap_or(&name);
            images.push((digest.get(..12).unwrap_or(digest).to_owned(), layers));
        }
    }
    (!images.is_empty()).then_some(images)
}
