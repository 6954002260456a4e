//! The nginx family: what these programs say about their own build, and what their data shows.
//!
//! The program's texts ([`text`], [`configure`]) are declarations and can be edited or be silent (options that did
//! nothing, modules a distribution patched in, `CFLAGS` from the environment); its module table and structures are
//! what really runs. Both are read, and where they disagree both are kept.

use crate::compiler::Level;
use crate::evidence::{Claim, Held, Place, Scope, Source, Strength};
use crate::facts::{self, Conflict, Linkage, Module, ModuleOrigin, Problem, Product};
use serde_json::Value;
use version::{Family, Version};

mod alignment;
mod binary;
pub mod catalogue;
pub mod config;
pub mod configure;
pub mod declared;
mod directives;
pub mod features;
mod filters;
mod handlers;
mod identify;
pub mod invocation;
pub mod loadable;
mod markers;
mod memory;
mod merging;
pub mod modules;
mod scan;
pub mod signature;
#[cfg(test)]
mod synthetic;
pub mod text;
pub mod version;
pub mod vocabulary;

pub use binary::{read, read_module};
pub use declared::{Declared, bundled_libraries};
pub use loadable::{ModuleFile, Server, loadable};
pub use text::looks_like_version_text;

/// Most characters of a line shown.
const MOST_OF_A_LINE: usize = 100;

/// Everything read from one program of the family.
#[derive(Debug, Clone)]
pub struct NginxFacts {
    /// Which program and version; the name is `nginx` where no version text is there.
    pub product: Product,
    /// The part of the document.
    pub nginx: facts::Nginx,
    /// Claims for reconciliation.
    pub claims: Vec<Claim>,
    /// Claims that disagree.
    pub conflicts: Vec<Conflict>,
    /// What could not be read.
    pub problems: Vec<Problem>,
    /// The level declared for the program's own code; `None` without a configure text.
    pub declared: Option<Declared>,
    /// Modules whose unit was compiled without merging equal string constants (gcc at `-O0`), by symbol.
    pub unmerged_modules: Vec<String>,
    /// Addresses that one module's structures name, ascending: mostly its functions.
    pub handlers: Vec<(u64, String)>,
    /// Addresses of the header and body filters, ascending; empty where the code that chains them does not tell.
    pub filters: Vec<u64>,
    /// What a dynamic module would be held against; `None` where the module structures could not be read.
    pub server: Option<Server>,
}

/// Reads the text that `nginx -V` prints. `None` if it is not such a text; an error if it is the texts of several programs, whose
/// parts would be mixed.
pub fn read_text(bytes: &[u8]) -> Option<Result<NginxFacts, String>> {
    if !looks_like_version_text(bytes) {
        return None;
    }
    let lossy = String::from_utf8_lossy(bytes);
    let mut problems = Vec::new();
    if matches!(lossy, std::borrow::Cow::Owned(_)) {
        problems.push(Problem::notice(
            "not-utf8",
            "the text is not UTF-8; what could not be read is shown as \u{fffd}",
        ));
    }
    let said = text::parse(&lossy);
    if let Some((one, other)) = &said.contradiction {
        let short = |line: &str| line.chars().take(MOST_OF_A_LINE).collect::<String>();
        return Some(Err(format!(
            "the texts that more than one nginx -V printed, which are to be given one by one: it says \"{}\" and \"{}\"",
            short(one),
            short(other)
        )));
    }
    let mut out = from_words(&said, problems, None);
    if let Some(arguments) = &said.arguments {
        let mut modules = declared_modules(&out.product, &arguments.list, Linkage::Static, &mut out.problems);
        modules.extend(declared_modules(&out.product, &arguments.list, Linkage::Dynamic, &mut out.problems));
        out.nginx.disabled = disabled(&out.product, &modules);
        out.nginx.modules = Some(modules);
    }
    Some(Ok(out))
}

/// The facts that the program's words alone give; `places` tells where in a file they stand.
fn from_words(said: &text::VersionText, mut problems: Vec<Problem>, at: Option<&Places>) -> NginxFacts {
    let known = said.product.clone();
    let product = known.unwrap_or_else(|| Product {
        name: "nginx".to_owned(),
        version: None,
        base: None,
        build_text: None,
    });
    problems.extend(luajit_risk(&product));
    let mut claims = Vec::new();
    let places = at.cloned().unwrap_or_default();
    if let Some(value) = &product.version {
        let line = said.version_lines.join("; ");
        claims.push(words("product.version", value.clone(), Source::BuildString, places.version, Some(line)));
    }
    if let Some(line) = &said.compiler_line
        && let Some((name, version)) = declared::compiler(line)
    {
        let value = version.map_or_else(|| name.to_owned(), |v| format!("{name} {v}"));
        claims.push(words("compiler", value, Source::BuildString, places.compiler, Some(line.clone())));
    }
    if let Some(built) = &said.openssl.built {
        let quote = said.openssl_line.clone();
        claims.push(words("openssl.built", built.clone(), Source::BuildString, places.openssl, quote));
    }
    let mut nginx = facts::Nginx {
        configure_raw: said.configure_raw.clone(),
        compiler_line: said.compiler_line.clone(),
        openssl: said.openssl.clone(),
        ..facts::Nginx::default()
    };
    let mut declared = None;
    if let Some(arguments) = &said.arguments {
        if arguments.unterminated {
            problems.push(Problem::damage(
                "cut-configure-arguments",
                "the configure arguments end inside a quoted value; what follows is lost",
            ));
        }
        let list = &arguments.list;
        let at = || places.configure.clone();
        let level = declared::declared(list, Some(&product), said.compiler_line.as_deref());
        if level.level != Level::Unknown {
            let quote = level.quote.clone().unwrap_or_else(|| level.why.clone());
            let value = level.level.as_str();
            claims.push(words("optimization.level", value, Source::ConfigureArguments, at(), Some(quote)));
        }
        let debug = list.iter().any(|a| a.name == "--with-debug");
        nginx.debug = Held::new(debug, Strength::Declared, Source::ConfigureArguments);
        let quote = if debug { "--with-debug" } else { "no --with-debug" };
        claims.push(words("nginx.debug", debug, Source::ConfigureArguments, at(), Some(quote.to_owned())));
        declared = Some(level);
        nginx.configure_arguments = Some(list.clone());
    }
    NginxFacts {
        product,
        nginx,
        claims,
        conflicts: Vec::new(),
        problems,
        declared,
        unmerged_modules: Vec::new(),
        handlers: Vec::new(),
        filters: Vec::new(),
        server: None,
    }
}

/// Processors that OpenResty's LuaJIT may not run on: its wrapper gave it `-msse4.2` where the building machine had that,
/// from 1.11.2.3 to 1.19.3.0 (`util/configure`). The library itself is another file, or has no text that tells.
fn luajit_risk(product: &Product) -> Option<Problem> {
    let version = product.version.as_deref().filter(|_| product.name == "openresty")?;
    let numbers: Vec<u32> = version.split('.').map_while(|part| part.parse().ok()).collect();
    let risky = numbers.len() == 4 && numbers >= vec![1, 11, 2, 3] && numbers < vec![1, 19, 3, 1];
    risky.then(|| {
        Problem::notice(
            "luajit-sse4.2",
            format!(
                "OpenResty {version} compiles LuaJIT with -msse4.2 where the building machine has it: it ends with SIGILL on older x86 processors"
            ),
        )
    })
}

/// Where the program's texts stand in its file.
#[derive(Debug, Clone, Default)]
struct Places {
    version: Option<Place>,
    compiler: Option<Place>,
    openssl: Option<Place>,
    configure: Option<Place>,
}

/// A claim the program's own words make about the whole file.
fn words(
    fact: &str,
    value: impl Into<Value>,
    source: Source,
    at: Option<Place>,
    quote: Option<String>,
) -> Claim {
    Claim {
        fact: fact.to_owned(),
        value: value.into(),
        strength: Strength::Declared,
        source,
        scope: Scope::File,
        at,
        quote,
    }
}

/// Modules of one linkage that the configure arguments ask for: the product's own, then those of
/// `--add-module` or `--add-dynamic-module`. Where the symbol of an added directory is not known, the directory's
/// name stands for it.
fn declared_modules(
    product: &Product,
    arguments: &[facts::ConfigureArgument],
    linkage: Linkage,
    problems: &mut Vec<Problem>,
) -> Vec<Module> {
    let family = version::family(Some(product));
    let version = version::nginx_version(Some(product));
    let dynamic = linkage == Linkage::Dynamic;
    let module = |name: &str, origin| Module {
        name: name.to_owned(),
        linkage,
        origin,
        sources: vec![Source::ConfigureArguments],
    };
    let of_defaults = family_of_defaults(product);
    let asked = |row: &catalogue::Known| row.with.iter().any(|own| arguments.iter().any(|a| a.name == *own));
    let there = |row: &catalogue::Known| {
        of_defaults == family
            || row.is_default(of_defaults, version.unwrap_or(catalogue::NEWEST))
            || asked(row)
    };
    let mut out: Vec<Module> = catalogue::expected(family, version, arguments)
        .into_iter()
        .filter(|(row, is_dynamic)| *is_dynamic == dynamic && there(row))
        .map(|(row, _)| module(row.name, ModuleOrigin::Builtin))
        .collect();
    for (part, needs) in [("stream", "--with-stream"), ("mail", "--with-mail")] {
        let alone = !dynamic
            && out.iter().any(|m| m.name.starts_with(&format!("ngx_{part}_")))
            && !arguments.iter().any(|a| a.name == needs || (part == "mail" && a.name == "--with-imap"));
        if alone {
            problems.push(Problem::notice(
                "option-without-effect",
                format!("options for {part} modules are given without {needs}; nginx's configure then compiles none"),
            ));
        }
    }
    let option = if dynamic { "--add-dynamic-module" } else { "--add-module" };
    for directory in arguments.iter().filter(|a| a.name == option).filter_map(|a| a.value.as_deref()) {
        let symbols = catalogue::symbols_of_directory(directory);
        let bundled =
            |symbol: &str| product.name == "openresty" && catalogue::is_bundled_with_openresty(symbol);
        for symbol in symbols.iter().filter(|s| !s.contains('*')) {
            let origin = if bundled(symbol) { ModuleOrigin::Bundled } else { ModuleOrigin::ThirdParty };
            out.push(module(symbol, origin));
        }
        if symbols.is_empty() {
            out.push(module(catalogue::directory_stem(directory), ModuleOrigin::ThirdParty));
        }
    }
    out
}

/// Whose default set a program has. A fork's own is known for one version of it only; for older ones nginx's is taken.
fn family_of_defaults(product: &Product) -> Family {
    let own: Option<Version> = product.version.as_deref().and_then(|v| v.parse().ok());
    match (version::family(Some(product)), own) {
        (Family::Tengine, Some(v)) if v < Version(3, 0, 0) => Family::Nginx,
        (Family::Angie, Some(v)) if v < Version(1, 10, 0) => Family::Nginx,
        (family, _) => family,
    }
}

/// Modules of the version's default set that are not in the list. Empty where the version is not known.
fn disabled(product: &Product, modules: &[Module]) -> Vec<String> {
    let Some(version) = version::nginx_version(Some(product)) else { return Vec::new() };
    let family = family_of_defaults(product);
    let there = |name: &str| modules.iter().any(|m| m.name == name);
    let mut out: Vec<String> =
        catalogue::defaults(family, version).filter(|name| !there(name)).map(str::to_owned).collect();
    if product.name == "openresty" && version >= Version(1, 13, 6) {
        out.extend(catalogue::openresty_defaults().filter(|name| !there(name)).map(str::to_owned));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_a_printed_text() {
        let text = b"nginx version: nginx/1.28.0\nbuilt with OpenSSL 3.5.2 5 Aug 2025 (running with OpenSSL 3.5.0 8 Apr 2025)\nTLS SNI support enabled\nconfigure arguments: --with-http_geoip_module=dynamic --without-http_empty_gif_module --add-dynamic-module=/src/ngx_brotli --add-module=/src/own-thing\n";
        let facts = read_text(text).unwrap().unwrap();
        assert_eq!(facts.declared.as_ref().unwrap().level, Level::Unknown);
        assert!(facts.claims.iter().all(|c| c.fact != "optimization.level" && c.fact != "compiler"));
        assert_eq!(facts.nginx.debug.value, Some(false));
        assert_eq!(facts.nginx.disabled, ["ngx_http_empty_gif_module"]);
        let modules = facts.nginx.modules.unwrap();
        let find = |name: &str| modules.iter().find(|m| m.name == name).map(|m| (m.linkage, m.origin));
        assert_eq!(find("ngx_http_geoip_module"), Some((Linkage::Dynamic, ModuleOrigin::Builtin)));
        assert_eq!(find("ngx_http_brotli_static_module"), Some((Linkage::Dynamic, ModuleOrigin::ThirdParty)));
        assert_eq!(find("own-thing"), Some((Linkage::Static, ModuleOrigin::ThirdParty)));
        assert_eq!(find("ngx_http_core_module"), Some((Linkage::Static, ModuleOrigin::Builtin)));
        assert_eq!(find("ngx_http_empty_gif_module"), None);
    }

    #[test]
    fn openresty_brings_its_modules_along() {
        let text = b"nginx version: openresty/1.27.1.2\nconfigure arguments: --with-cc-opt='-O2 -O0' --add-module=../ngx_devel_kit-0.3.3 --add-module=../ngx_lua-0.10.28\n";
        let facts = read_text(text).unwrap().unwrap();
        assert_eq!(facts.declared.unwrap().level, Level::O0);
        assert!(facts.nginx.disabled.contains(&"ngx_http_echo_module".to_owned()));
        assert!(!facts.nginx.disabled.contains(&"ngx_http_lua_module".to_owned()));
        let modules = facts.nginx.modules.unwrap();
        assert!(modules.iter().any(|m| m.name == "ndk_http_module" && m.origin == ModuleOrigin::Bundled));
    }

    #[test]
    fn an_older_fork_has_nginx_s_default_modules() {
        let names = |text: &str| -> Vec<String> {
            read_text(text.as_bytes())
                .unwrap()
                .unwrap()
                .nginx
                .modules
                .unwrap()
                .into_iter()
                .map(|m| m.name)
                .collect()
        };
        let own = "ngx_http_docker_module".to_owned();
        assert!(names("Angie version: Angie/1.12.1\nconfigure arguments:\n").contains(&own));
        let old = names("Angie version: Angie/1.4.1\nconfigure arguments: --with-http_acme_module\n");
        assert!(!old.contains(&own) && old.contains(&"ngx_http_core_module".to_owned()), "{old:?}");
        assert!(old.contains(&"ngx_acme_module".to_owned()), "{old:?}");
    }

    #[test]
    fn openresty_versions_whose_luajit_may_not_run_everywhere() {
        let said = |version: &str| {
            let text = format!("nginx version: openresty/{version}\nconfigure arguments:\n");
            read_text(text.as_bytes())
                .unwrap()
                .unwrap()
                .problems
                .iter()
                .any(|p| p.code == "luajit-sse4.2" && !p.loses_facts)
        };
        assert!(said("1.11.2.3") && said("1.13.6.1") && said("1.19.3.0"));
        assert!(!said("1.11.2.2") && !said("1.19.3.1") && !said("1.27.1.2"));
    }

    #[test]
    fn a_text_with_arguments_alone() {
        let facts = read_text(b"configure arguments: --with-debug").unwrap().unwrap();
        assert_eq!((facts.product.name.as_str(), facts.product.version), ("nginx", None));
        assert_eq!(facts.nginx.debug.value, Some(true));
        assert_eq!(read_text(b"no such thing").map(|_| ()), None);
    }
}
