//! Whether the server would load a dynamic module: nginx's own checks, in its own order and words
//! (`ngx_add_module` in `src/core/ngx_module.c`).

use super::signature;
use super::version::{Family, Version};
use crate::facts::DynamicModule;
use std::collections::BTreeSet;

/// What a server holds a module against.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Server {
    /// Which program of the family.
    pub family: Family,
    /// The nginx version whose signature layout it has.
    pub nginx: Option<Version>,
    /// The version number in its module structures.
    pub version: Option<u64>,
    /// Its module signature.
    pub signature: Option<String>,
    /// Whether it is Angie, which takes only modules compiled for it.
    pub angie: bool,
    /// Modules compiled in.
    pub modules: Vec<String>,
    /// Symbols of the program's own that it exports to modules; empty where it exports none or they could not be read.
    pub exports: BTreeSet<String>,
    /// Linked statically: it has no `dlopen` that works, and no symbols for a module.
    pub is_static: bool,
}

/// A module file, as far as the server looks at it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleFile {
    /// File.
    pub path: String,
    /// Modules in it.
    pub names: Vec<String>,
    /// The version number it was compiled for.
    pub version: Option<u64>,
    /// Its signature.
    pub signature: Option<String>,
    /// Whether it was compiled for Angie.
    pub angie: bool,
    /// Symbols it needs of the server or of modules loaded before it (those that begin with `ngx_` or `ndk_`).
    pub needs: BTreeSet<String>,
}

/// Whether a symbol is one that servers and modules of the family share.
pub(super) fn is_own_symbol(name: &[u8]) -> bool {
    name.starts_with(b"ngx_") || name.starts_with(b"ndk_")
}

/// Predicts the result of `load_module`. `loadable` is `None` where one of the sides could not be read.
///
/// `all_known` tells that the server has, with its `exports`, everything that was loaded before this file; without that
/// the result is `None` where the module needs symbols that another one may bring. Not looked at: libraries the module
/// needs, and the machine.
pub fn loadable(server: &Server, file: &ModuleFile, all_known: bool) -> DynamicModule {
    let path = &file.path;
    let missing: Vec<&str> = file.needs.difference(&server.exports).map(String::as_str).collect();
    let missing = if server.exports.is_empty() { Vec::new() } else { missing };
    let shown = || {
        let more = if missing.len() > 3 { format!(" and {} more", missing.len() - 3) } else { String::new() };
        format!("{}{more}", missing.get(..3).unwrap_or(&missing).join(", "))
    };
    let refused = refused(server, file);
    let unknown = server.version.is_none()
        || file.version.is_none()
        || server.signature.is_none()
        || file.signature.is_none();
    let (loadable, why_not) = if server.is_static {
        (
            Some(false),
            Some(format!("dlopen() \"{path}\" failed: the server is linked statically and loads no modules")),
        )
    } else if all_known && !missing.is_empty() {
        // The file is opened before nginx looks at it; what is wrong with it besides is the likelier cause.
        let besides = refused.map(|why| format!("; besides, {why}")).unwrap_or_default();
        (Some(false), Some(format!("dlopen() \"{path}\" failed (undefined symbol: {}){besides}", shown())))
    } else if let Some(why) = refused {
        (Some(false), Some(why))
    } else if unknown {
        (None, Some("version number or signature of module or server could not be read".to_owned()))
    } else if !missing.is_empty() {
        let why = "needs symbols that the server does not export, so another module must be loaded before it";
        (None, Some(format!("{why}: {}", shown())))
    } else {
        (Some(true), None)
    };
    DynamicModule {
        path: path.clone(),
        name: file.names.first().cloned(),
        version: file.version.and_then(Version::from_number).map(|v| v.to_string()),
        signature: file.signature.clone(),
        loadable,
        why_not,
    }
}

/// What the server itself says of a file that it could open, in the order of its checks.
fn refused(server: &Server, file: &ModuleFile) -> Option<String> {
    let path = &file.path;
    let versions = server.version.zip(file.version);
    if versions.is_some() && server.angie && !file.angie {
        return Some(format!("module \"{path}\" is built not for Angie"));
    }
    if let Some((wants, has)) = versions.filter(|(a, b)| a != b) {
        return Some(format!("module \"{path}\" version {has} instead of {wants}"));
    }
    let signatures = server.signature.as_ref().zip(file.signature.as_ref());
    if let Some((wants, has)) = signatures.filter(|(a, b)| a != b) {
        let differences = signature::differences(wants, has, server.family, server.nginx).join(", ");
        return Some(format!("module \"{path}\" is not binary compatible (differs in: {differences})"));
    }
    let name = file.names.iter().find(|name| server.modules.contains(name))?;
    Some(format!("module \"{name}\" is already loaded"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Server {
        Server {
            nginx: Some(Version(1, 22, 1)),
            version: Some(1_022_001),
            signature: Some("8,4,8,0011111111010111001111111111111111".to_owned()),
            modules: vec!["ngx_http_geoip_module".to_owned()],
            ..Server::default()
        }
    }

    fn file() -> ModuleFile {
        ModuleFile {
            path: "/usr/lib/nginx/modules/ngx_http_lua_module.so".to_owned(),
            names: vec!["ngx_http_lua_module".to_owned()],
            version: server().version,
            signature: server().signature,
            angie: false,
            needs: BTreeSet::new(),
        }
    }

    fn why(server: &Server, file: &ModuleFile) -> Option<String> {
        loadable(server, file, false).why_not
    }

    #[test]
    fn the_checks_come_in_nginx_s_order() {
        let good = loadable(&server(), &file(), false);
        assert_eq!((good.loadable, good.version.as_deref()), (Some(true), Some("1.22.1")));
        let bad = ModuleFile { version: Some(1_022_000), signature: Some("4,4,4,0".into()), ..file() };
        assert!(why(&server(), &bad).unwrap().ends_with("version 1022000 instead of 1022001"));
        let bad = ModuleFile { signature: Some("8,4,8,0011111111010111001111011111111111".into()), ..file() };
        assert!(why(&server(), &bad).unwrap().ends_with("is not binary compatible (differs in: pcre)"));
        let bad = ModuleFile { names: vec!["ngx_http_geoip_module".into()], ..file() };
        assert!(why(&server(), &bad).unwrap().ends_with("\"ngx_http_geoip_module\" is already loaded"));
        let angie = Server { angie: true, ..server() };
        assert!(why(&angie, &file()).unwrap().ends_with("is built not for Angie"));
        let exports = ["ngx_palloc".to_owned()].into();
        let with_symbols = Server { exports, ..server() };
        let needs = |name: &str| ModuleFile { needs: [name.to_owned()].into(), ..file() };
        assert_eq!(loadable(&with_symbols, &needs("ngx_palloc"), true).loadable, Some(true));
        let open = loadable(&with_symbols, &needs("ndk_set_var_value"), false);
        assert_eq!(open.loadable, None);
        assert!(open.why_not.unwrap().ends_with("before it: ndk_set_var_value"));
        let alone = loadable(&with_symbols, &needs("ndk_set_var_value"), true);
        assert_eq!(alone.loadable, Some(false));
        assert!(alone.why_not.unwrap().ends_with("failed (undefined symbol: ndk_set_var_value)"));
        let older = ModuleFile { version: Some(1_022_000), ..needs("ndk_set_var_value") };
        let why = loadable(&with_symbols, &older, true).why_not.unwrap();
        assert!(why.contains("failed (undefined symbol") && why.ends_with("1022000 instead of 1022001"));
        let fixed = Server { is_static: true, exports: BTreeSet::new(), ..server() };
        assert_eq!(loadable(&fixed, &file(), true).loadable, Some(false));
        let unread = ModuleFile { signature: None, ..file() };
        assert_eq!(loadable(&server(), &unread, true).loadable, None);
    }
}
