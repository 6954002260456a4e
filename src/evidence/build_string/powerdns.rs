//! PowerDNS servers and tools carry their `configure` line in double quotes.

use super::{Builder, Found, Recogniser, Texts};

/// PowerDNS: authoritative server, recursor, dnsdist.
pub(super) const RECOGNISER: Recogniser = Recogniser {
    program: "powerdns",
    marks: &[
        "^PowerDNS Authoritative Server",
        "^PowerDNS Recursor",
        "PACKAGEVERSION=",
        "'--build=",
        "'--prefix=",
        "'CXXFLAGS=",
    ],
    read,
};

fn read(texts: &Texts<'_>) -> Option<Found> {
    texts.all().find(|text| text.text.starts_with("PowerDNS "))?;
    let line = texts.configure_line()?;
    // The version stands in a text by itself that nothing marks; a distribution also hands it to the compiler, with the
    // revision of its package behind the last dash, which the program does not print.
    let version = line.text.split_once("PACKAGEVERSION=").and_then(|(_, rest)| {
        let package =
            rest.split(['\'', '"', '\\']).find(|part| part.starts_with(|c: char| c.is_ascii_digit()))?;
        Some(package.rsplit_once('-').map_or(package, |(version, _)| version))
    });
    let mut builder = Builder::new("powerdns", &line.at).version(version);
    builder.configure(line);
    Some(builder.found)
}
