//! Dynamic modules given beside the server that is to load them.

use super::Options;
use crate::image::pointers::Pointers;
use crate::image::symbols::Symbols;
use crate::image::{Image, linkage};
use crate::nginx::{self, ModuleFile, Server};
use crate::target::Subject;
use object::elf;

fn image(subject: &Subject, options: &Options) -> Option<Image> {
    let input = subject.open(&options.limits).ok()?;
    Image::open(input, &options.limits).ok()
}

/// Reads a target as a dynamic module; `None` if it is none.
pub(super) fn module(subject: &Subject, name: &str, options: &Options) -> Option<ModuleFile> {
    let image = image(subject, options)?;
    let linkage = linkage::read(&image);
    let symbols = Symbols::new();
    // `load_module` looks for this symbol (`ngx_load_module` in `src/core/nginx.c`). Executables may export it, too.
    let exported =
        symbols.dynamic(&image, &linkage).iter().any(|s| !s.undefined && s.base_name() == b"ngx_modules");
    if !exported || linkage.interpreter.is_some() || linkage.pie || image.header.kind != elf::ET_DYN {
        return None;
    }
    let pointers = Pointers::read(&image, &linkage);
    nginx::read_module(&image, &linkage, &symbols, &pointers, name)
}

/// Reads a target as a server that modules are held against.
pub(super) fn server(subject: &Subject, options: &Options) -> Option<Server> {
    let image = image(subject, options)?;
    let linkage = linkage::read(&image);
    let pointers = Pointers::read(&image, &linkage);
    nginx::read(&image, &linkage, &Symbols::new(), &pointers)?.server
}
