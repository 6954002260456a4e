//! Prints name, directory and producer of every compilation unit of the files named, separated by tabs.
//! `benches/oracle-units.sh` holds that against what llvm-dwarfdump prints.

use flagaudit::evidence::dwarf_producer::{self, DwarfUnitKind};
use flagaudit::image::{Image, Input};
use flagaudit::limits::Limits;
use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for path in std::env::args_os().skip(1) {
        let image = Image::open(Input::file(std::fs::File::open(path)?)?, &Limits::default())?;
        for unit in dwarf_producer::read(&image, None).units {
            if matches!(unit.kind, DwarfUnitKind::Compile | DwarfUnitKind::Skeleton { .. }) {
                for (text, end) in [
                    (&unit.name[..], b'\t'),
                    (&unit.comp_dir[..], b'\t'),
                    (unit.producer.as_deref().unwrap_or_default(), b'\n'),
                ] {
                    out.write_all(text)?;
                    out.write_all(&[end])?;
                }
            }
        }
    }
    Ok(())
}
