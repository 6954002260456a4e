//! Container images: which archives inside an archive are layers, and in what order.

use super::contents::{self, Contents, Found, MOST_MANIFEST, clean};
use super::room::Room;
use super::tree::Tree;
use super::{Kind, kind, stream};
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Most layers of one image (Docker allows 127).
const MOST_LAYERS: usize = 512;
/// Most images in one archive.
const MOST_IMAGES: usize = 64;
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
    #[serde(rename = "mediaType", default)]
    media_type: String,
}

impl Descriptor {
    /// Whether this is a document about an image and no layer of one: attestations (which buildx adds to every image by
    /// default), signatures and bills of material stand in manifests of their own, among those of the platforms.
    fn is_document(&self) -> bool {
        self.media_type.ends_with("json")
    }

    /// The blob's name. A digest that is no digest names nothing.
    fn name(&self) -> Option<String> {
        let (algorithm, hash) = self.digest.split_once(':')?;
        let plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        (plain(algorithm) && plain(hash)).then(|| format!("/blobs/{algorithm}/{hash}"))
    }
}

/// An image by its tag: names of its layers, lowest first, or why one has none.
struct Listed {
    tag: String,
    layers: Vec<Result<String, String>>,
}

/// The file tree of a container image, or `None` if the archive is none. Of several images each has its own tree,
/// and the names begin with the image's. What is listed and not read is refused.
pub(super) fn image(outer: &Contents, room: &Room) -> Option<Contents> {
    let by_name: HashMap<&str, &Found> =
        outer.found.iter().map(|found| (found.name.as_str(), found)).collect();
    let mut all = Contents::default();
    let images = saved(&by_name, &mut all).or_else(|| indexed(&by_name, &mut all))?;
    let mut ids = 0;
    let several = images.len() > 1;
    // Images share their lower layers; each is read once.
    let mut read: HashMap<String, Rc<Contents>> = HashMap::new();
    for Listed { tag, layers } in images {
        let mut tree = Tree::default();
        if layers.len() > MOST_LAYERS {
            all.refuse("", format!("{tag}: more than {MOST_LAYERS} layers; the rest is not read"));
        }
        for layer in layers.into_iter().take(MOST_LAYERS) {
            let layer = match layer {
                Ok(layer) => layer,
                Err(why) => {
                    all.refuse("", format!("{tag}: {why}"));
                    continue;
                }
            };
            let contents = if let Some(contents) = read.get(&layer) {
                Rc::clone(contents)
            } else {
                let contents = Rc::new(of_layer(&layer, &by_name, room));
                all.skipped += contents.skipped;
                all.left_out += contents.left_out;
                // What was refused stays refused, whatever upper layers do.
                all.found.extend(contents.found.iter().filter(|found| found.bytes.is_err()).cloned());
                read.insert(layer, Rc::clone(&contents));
                contents
            };
            tree.lay(&contents, &mut ids);
        }
        let files = tree.found().filter(|found| found.bytes.is_ok());
        let prefix = if several { format!("{tag}!") } else { String::new() };
        all.found
            .extend(files.map(|found| Found { name: format!("{prefix}{}", found.name), ..found.clone() }));
        all.trees.push((prefix, tree));
    }
    Some(all)
}

fn of_layer(layer: &str, by_name: &HashMap<&str, &Found>, room: &Room) -> Contents {
    let input = match by_name.get(layer).map(|found| &found.bytes) {
        None => return Contents::damaged(format!("the layer {layer} is missing")),
        Some(Err(why)) => return Contents::damaged(format!("the layer {layer}: {why}")),
        Some(Ok(input)) => input,
    };
    let contents = match kind(input, room) {
        Some(Kind::Tar) => contents::of_plain(input, room),
        _ => match stream::open(input, room) {
            Ok(stream) => contents::of_stream(stream, room),
            Err(error) => return Contents::damaged(format!("the layer {layer}: {error}")),
        },
    };
    if contents.not_an_archive || contents.single.is_some() {
        return Contents::damaged(format!("the layer {layer} is no archive"));
    }
    contents
}

fn json<T: for<'a> Deserialize<'a>>(by_name: &HashMap<&str, &Found>, name: &str) -> Option<T> {
    let input = by_name.get(name)?.bytes.as_ref().ok()?;
    let bytes = input.read_vec(0, input.len(), MOST_MANIFEST, "manifest").ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Images as `docker save` lists them.
fn saved(by_name: &HashMap<&str, &Found>, refused: &mut Contents) -> Option<Vec<Listed>> {
    let list: Vec<Saved> = json(by_name, "/manifest.json")?;
    if list.len() > MOST_IMAGES {
        refused.refuse("", format!("more than {MOST_IMAGES} images; the rest is not read"));
    }
    let images = list.into_iter().take(MOST_IMAGES).enumerate().map(|(index, image)| {
        let tag = image.tags.unwrap_or_default().into_iter().next();
        let named =
            |layer: &String| clean(layer.as_bytes()).map_err(|why| format!("a layer is refused: {why}"));
        Listed {
            tag: tag.unwrap_or_else(|| format!("image {}", index + 1)),
            layers: image.layers.iter().map(named).collect(),
        }
    });
    let images: Vec<Listed> = images.filter(|image| !image.layers.is_empty()).collect();
    (!images.is_empty()).then_some(images)
}

/// Images of an OCI layout. A manifest that is listed and not there belongs to a platform that was not packed.
fn indexed(by_name: &HashMap<&str, &Found>, refused: &mut Contents) -> Option<Vec<Listed>> {
    let mut pending: Vec<(String, usize)> = vec![("/index.json".to_owned(), 0)];
    let mut images = Vec::new();
    let mut left_out = false;
    let mut seen = HashSet::new();
    json::<Manifest>(by_name, "/index.json")?;
    while let Some((name, depth)) = pending.pop() {
        // An index may name a manifest more than once, and itself.
        if !seen.insert(name.clone()) {
            continue;
        }
        let Some(manifest) = json::<Manifest>(by_name, &name) else {
            if by_name.contains_key(name.as_str()) {
                refused.refuse("", format!("{name} is no manifest that can be read"));
            }
            continue;
        };
        let named =
            |one: &Descriptor| one.name().ok_or_else(|| "a digest that names no blob is refused".to_owned());
        for next in manifest.manifests.iter().map(named) {
            match next {
                Ok(next) if depth < MOST_INDICES && pending.len() < MOST_IMAGES => {
                    pending.push((next, depth + 1));
                }
                Ok(_) => left_out = true,
                Err(why) => refused.refuse("", why),
            }
        }
        let layers: Vec<&Descriptor> = manifest.layers.iter().filter(|layer| !layer.is_document()).collect();
        if layers.is_empty() {
            continue;
        }
        if images.len() >= MOST_IMAGES {
            left_out = true;
            break;
        }
        let digest = name.rsplit('/').next().unwrap_or(&name);
        let tag = digest.get(..12).unwrap_or(digest).to_owned();
        images.push(Listed { tag, layers: layers.into_iter().map(named).collect() });
    }
    if left_out {
        refused.refuse("", format!("more than {MOST_IMAGES} images; the rest is not read"));
    }
    // A layout of which everything is refused is a layout all the same.
    let refused = by_name.contains_key("/oci-layout") && !refused.found.is_empty();
    (refused || !images.is_empty()).then_some(images)
}
