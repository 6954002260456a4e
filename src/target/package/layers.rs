//! Container images: which archives inside an archive or a directory are layers, and in what order.

use super::blobs::{Blob, Blobs};
use super::contents::{self, Contents, Found, MOST_MANIFEST, clean};
use super::room::Room;
use super::tree::Tree;
use super::{Kind, START, kind, stream};
use crate::image::Input;
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

/// How media types of layers begin, whatever they are compressed with (OCI image specification, "Media Types"; Docker's image
/// manifest version 2, schema 2).
const LAYER_TYPES: [&str; 4] = [
    "application/vnd.oci.image.layer.v1.",
    "application/vnd.oci.image.layer.nondistributable.v1.",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.foreign.diff.tar",
];

impl Descriptor {
    /// Whether this is a layer, as against a document: attestations (which buildx adds to every image by default), signatures
    /// and bills of material stand among the layers of manifests of their own. A media type that is no layer's proves nothing,
    /// and then the bytes tell.
    fn is_layer(&self, blobs: &Blobs<'_>) -> bool {
        if LAYER_TYPES.iter().any(|begins| self.media_type.starts_with(begins)) {
            return true;
        }
        match self.name().map(|name| blobs.get(&name)) {
            // A document that was not packed is no part of what was shipped.
            Some(Blob::Missing | Blob::Refused(_)) => !self.is_json(),
            Some(Blob::Bytes(input)) => !is_document(&input),
            Some(Blob::Other) => false,
            None => true,
        }
    }

    fn is_json(&self) -> bool {
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
pub(super) fn image(blobs: &Blobs<'_>, room: &Room) -> Option<Contents> {
    let mut all = Contents::default();
    let images = saved(blobs, &mut all).or_else(|| indexed(blobs, &mut all))?;
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
                let contents = Rc::new(of_layer(&layer, blobs, room));
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

fn of_layer(layer: &str, blobs: &Blobs<'_>, room: &Room) -> Contents {
    let input = match blobs.get(layer) {
        Blob::Missing => return Contents::damaged(format!("the layer {layer} is missing")),
        Blob::Refused(why) => return Contents::damaged(format!("the layer {layer}: {why}")),
        Blob::Other => return Contents::damaged(format!("the layer {layer} is no archive")),
        Blob::Bytes(input) => input,
    };
    let contents = match kind(&input, room) {
        Some(Kind::Tar) => contents::of_plain(&input, room),
        _ => match stream::open(&input, room) {
            Ok(stream) => contents::of_stream(stream, room),
            Err(error) => return Contents::damaged(format!("the layer {layer}: {error}")),
        },
    };
    let no_entry =
        || matches!(stream::beginning(&input, START, room), (start, None) if contents::is_empty_tar(&start));
    if contents.not_an_archive && no_entry() {
        return Contents::default();
    }
    if contents.not_an_archive || contents.single.is_some() {
        return Contents::damaged(format!("the layer {layer} is no archive"));
    }
    contents
}

/// Whether a file begins as a document in JSON does.
fn is_document(input: &Input) -> bool {
    let mut start = [0; 64];
    let got = input.read_at(0, &mut start).unwrap_or_default();
    contents::is_json(start.get(..got).unwrap_or_default())
}

fn json<T: for<'a> Deserialize<'a>>(blobs: &Blobs<'_>, name: &str) -> Option<T> {
    let Blob::Bytes(input) = blobs.get(name) else { return None };
    let bytes = input.read_vec(0, input.len(), MOST_MANIFEST, "manifest").ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Images as `docker save` lists them.
fn saved(blobs: &Blobs<'_>, refused: &mut Contents) -> Option<Vec<Listed>> {
    let list: Vec<Saved> = json(blobs, "/manifest.json")?;
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
fn indexed(blobs: &Blobs<'_>, refused: &mut Contents) -> Option<Vec<Listed>> {
    let mut pending: Vec<(String, usize)> = vec![("/index.json".to_owned(), 0)];
    let mut images = Vec::new();
    let mut left_out = false;
    let mut seen = HashSet::new();
    json::<Manifest>(blobs, "/index.json")?;
    while let Some((name, depth)) = pending.pop() {
        // An index may name a manifest more than once, and itself.
        if !seen.insert(name.clone()) {
            continue;
        }
        let Some(manifest) = json::<Manifest>(blobs, &name) else {
            if !matches!(blobs.get(&name), Blob::Missing) {
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
        let (layers, rest): (Vec<&Descriptor>, Vec<&Descriptor>) =
            manifest.layers.iter().partition(|layer| layer.is_layer(blobs));
        if layers.is_empty() {
            continue;
        }
        // In an image, what says that it is a document may be one; all else was to be a layer.
        for one in rest.into_iter().filter(|one| !one.is_json()) {
            refused.refuse("", format!("the layer {} ({}) is no archive", one.digest, one.media_type));
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
    let refused = !matches!(blobs.get("/oci-layout"), Blob::Missing) && !refused.found.is_empty();
    (refused || !images.is_empty()).then_some(images)
}
