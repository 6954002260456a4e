//! Which program of the family this is, and which version.

use crate::facts::{Base, Product};
use std::fmt;
use std::str::FromStr;

/// A version of the nginx numbering scheme, `major.minor.patch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// The version in the integer of every module structure: `major * 1000000 + minor * 1000 + patch`
    /// (`src/core/nginx.h`, `nginx_version`).
    pub fn from_number(number: u64) -> Option<Self> {
        let number = u32::try_from(number).ok()?;
        (number != 0).then_some(Self(number / 1_000_000, number / 1000 % 1000, number % 1000))
    }

    /// The integer of [`Version::from_number`].
    pub fn number(self) -> u64 {
        u64::from(self.0) * 1_000_000 + u64::from(self.1) * 1000 + u64::from(self.2)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

impl FromStr for Version {
    type Err = ();
    /// Reads the first three numbers of a dotted version; what follows is ignored (OpenResty has a fourth).
    fn from_str(text: &str) -> Result<Self, ()> {
        let mut numbers = text.split('.').map(|part| {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            part[..digits].parse::<u32>().map_err(|_| ())
        });
        let mut next = || numbers.next().ok_or(())?;
        let (major, minor) = (next()?, next()?);
        Ok(Self(major, minor, next().unwrap_or(0)))
    }
}

/// Members of the family that differ in their modules and options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Family {
    /// nginx itself, nginx Plus, and OpenResty, which is nginx with modules added.
    #[default]
    Nginx,
    /// Tengine.
    Tengine,
    /// Angie.
    Angie,
    /// freenginx.
    Freenginx,
}

/// The family member a product belongs to.
pub fn family(product: Option<&Product>) -> Family {
    match product.map(|p| p.name.as_str()) {
        Some("tengine") => Family::Tengine,
        Some("angie") => Family::Angie,
        Some("freenginx") => Family::Freenginx,
        _ => Family::Nginx,
    }
}

/// The nginx version whose modules and options a product has: its own, or that of the nginx inside it.
pub fn nginx_version(product: Option<&Product>) -> Option<Version> {
    let product = product?;
    let version = match &product.base {
        Some(base) => base.version.as_deref(),
        None if matches!(product.name.as_str(), "tengine" | "angie") => None,
        None => product.version.as_deref(),
    };
    version?.parse().ok()
}

/// Whether the build text names nginx Plus.
pub fn is_plus(product: Option<&Product>) -> bool {
    product.and_then(|p| p.build_text.as_deref()).is_some_and(|text| text.starts_with("nginx-plus"))
}

/// Reads the lines (or literals) that name program and version: `nginx version: …`, and those of the forks.
/// Old versions put `nginx: ` before it. A fork's own line goes before nginx's.
pub fn product<S: AsRef<str>>(lines: &[S]) -> Option<Product> {
    let find = |prefix: &str| {
        lines.iter().find_map(|line| {
            let line = line.as_ref().trim();
            line.strip_prefix("nginx: ").unwrap_or(line).strip_prefix(prefix).map(str::trim)
        })
    };
    let nginx = find("nginx version: ").and_then(named_version);
    for (prefix, name) in [("Angie version: ", "angie"), ("Tengine version: ", "tengine")] {
        let Some((_, version, paren)) = find(prefix).and_then(named_version) else { continue };
        let in_paren = paren.as_deref().and_then(named_version).filter(|(name, ..)| name == "nginx");
        let build_text = if in_paren.is_some() { None } else { paren };
        let base = in_paren.or(nginx).map(|(_, version, _)| base_nginx(version));
        return Some(Product { name: name.to_owned(), version: Some(version), base, build_text });
    }
    let (name, version, build_text) = nginx?;
    let (name, base) = match name.as_str() {
        "openresty" | "ngx_openresty" => {
            let core = version.parse::<Version>().ok().map(|v| base_nginx(v.to_string()));
            ("openresty".to_owned(), core)
        }
        "nginx" | "freenginx" => (name, None),
        // A name of one's own (`NGINX_VER` edited): the number is that of who gave the name, and may be nginx's or not.
        _ => (name, Some(Base { name: "nginx".to_owned(), version: None })),
    };
    Some(Product { name, version: Some(version), base, build_text })
}

fn base_nginx(version: String) -> Base {
    Base { name: "nginx".to_owned(), version: Some(version) }
}

/// `name/version (text)` in lower-case name, version, text.
fn named_version(text: &str) -> Option<(String, String, Option<String>)> {
    let (name, rest) = text.split_once('/')?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (version, rest) = rest.split_at(end);
    // A name of one's own may hold blanks, a sentence with a path in it is none.
    let odd = name.contains(char::is_whitespace) && !version.starts_with(|c: char| c.is_ascii_digit());
    if version.is_empty() || name.trim().is_empty() || odd {
        return None;
    }
    let rest = rest.trim();
    let rest = rest.strip_prefix('(').and_then(|r| r.strip_suffix(')')).unwrap_or(rest);
    Some((name.to_lowercase(), version.to_owned(), (!rest.is_empty()).then(|| rest.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, String, Option<String>, Option<String>) {
        let p = product(&text.lines().collect::<Vec<_>>()).unwrap();
        (p.name, p.version.unwrap(), p.base.and_then(|b| b.version), p.build_text)
    }

    fn want(
        name: &str,
        version: &str,
        base: Option<&str>,
        text: Option<&str>,
    ) -> (String, String, Option<String>, Option<String>) {
        (name.into(), version.into(), base.map(Into::into), text.map(Into::into))
    }

    #[test]
    fn every_product_of_the_family() {
        assert_eq!(read("nginx version: nginx/1.31.4\n"), want("nginx", "1.31.4", None, None));
        assert_eq!(read("nginx: nginx version: nginx/1.0.0"), want("nginx", "1.0.0", None, None));
        assert_eq!(
            read("nginx version: nginx/1.18.0 (Ubuntu)"),
            want("nginx", "1.18.0", None, Some("Ubuntu"))
        );
        assert_eq!(
            read("nginx version: nginx/1.25.3 (nginx-plus-r31-p1)"),
            want("nginx", "1.25.3", None, Some("nginx-plus-r31-p1"))
        );
        assert_eq!(
            read("nginx version: openresty/1.27.1.2 (no pool)"),
            want("openresty", "1.27.1.2", Some("1.27.1"), Some("no pool"))
        );
        assert_eq!(
            read("nginx version: ngx_openresty/1.4.3.6"),
            want("openresty", "1.4.3.6", Some("1.4.3"), None)
        );
        assert_eq!(
            read("Tengine version: Tengine/2.3.0 (nginx/1.15.9)"),
            want("tengine", "2.3.0", Some("1.15.9"), None)
        );
        assert_eq!(
            read("Tengine version: Tengine/3.2.0\nnginx version: nginx/1.31.3\n"),
            want("tengine", "3.2.0", Some("1.31.3"), None)
        );
        assert_eq!(
            read("Angie version: Angie/1.12.1 (build 7)\nnginx version: nginx/1.31.2"),
            want("angie", "1.12.1", Some("1.31.2"), Some("build 7"))
        );
        assert_eq!(read("Angie version: Angie/1.1.0"), want("angie", "1.1.0", None, None));
        assert_eq!(read("nginx version: freenginx/1.27.2"), want("freenginx", "1.27.2", None, None));
        assert_eq!(read("Angie version: Angie PRO/1.5.1"), want("angie", "1.5.1", None, None));
        assert_eq!(read("nginx version: My Gate/7.3 (eu)"), want("my gate", "7.3", None, Some("eu")));
        assert_eq!(product(&["nginx version: see the file/path"]), None);
        let own = product(&["nginx version: MyGate/7.3"]);
        assert_eq!(
            nginx_version(own.as_ref()),
            None,
            "the number of a name of one's own is no nginx version"
        );
    }

    #[test]
    fn what_is_no_version_line() {
        assert_eq!(product(&["nginx version: unknown\n"]), None);
        assert_eq!(product(&["the nginx version: nginx/1"]), None);
        assert_eq!(product(&[""]), None);
    }

    #[test]
    fn numbers() {
        assert_eq!("1.31.4".parse(), Ok(Version(1, 31, 4)));
        assert_eq!("1.27.1.2".parse(), Ok(Version(1, 27, 1)));
        assert_eq!("1.30".parse(), Ok(Version(1, 30, 0)));
        assert_eq!("x".parse::<Version>(), Err(()));
        assert_eq!(Version::from_number(1_022_001), Some(Version(1, 22, 1)));
        assert_eq!(Version(1, 22, 1).number(), 1_022_001);
        assert_eq!(Version::from_number(u64::MAX), None);
    }
}
