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
/// Also `None` where the module needs symbols that the server does not export and another module has to bring.
/// Not looked at: libraries the module needs, and the machine.
pub fn loadable(server: &Server, file: &ModuleFile) -> DynamicModule {
    let path = &file.path;
    let mut why_not = None;
    let mut loadable = Some(true);
    let mut refuse = |why: String| {
        loadable = Some(false);
        why_not = Some(why);
    };
    let unknown = server.version.is_none()
        || file.version.is_none()
        || server.signature.is_none()
        || file.signature.is_none();
    if server.version.zip(file.version).is_some() && server.angie && !file.angie {
        refuse(format!("module \"{path}\" is built not for Angie"));
    } else if let Some((wants, has)) = server.version.zip(file.version).filter(|(a, b)| a != b) {
        refuse(format!("module \"{path}\" version {has} instead of {wants}"));
    } else if let Some((wants, has)) =
        server.signature.as_ref().zip(file.signature.as_ref()).filter(|(a, b)| a != b)
    {
        let differences = signature::differences(wants, has, server.family, server.nginx).join(", ");
        refuse(format!("module \"{path}\" is not binary compatible (differs in: {differences})"));
    } else if let Some(name) = file.names.iter().find(|name| server.modules.contains(name)) {
        refuse(format!("module \"{name}\" is already loaded"));
    } else if unknown {
        loadable = None;
        why_not = Some("version number or signature of module or server could not be read".to_owned());
    }
    let missing: Vec<&str> = file.needs.difference(&server.exports).map(String::as_str).collect();
    if loadable == Some(true) && !missing.is_empty() && !server.exports.is_empty() {
        let shown = missing.get(..3).unwrap_or(&missing).join(", ");
        let more = if missing.len() > 3 { format!(" and {} more", missing.len() - 3) } else { String::new() };
        loadable = None;
        why_not = Some(format!(
            "needs symbols that the server does not export, so another module must be loaded before it: {shown}{more}"
        ));
    }
    DynamicModule {
        path: path.clone(),
        name: file.names.first().cloned(),
        version: file.version.and_then(Version::from_number).map(|v| v.to_string()),
        signature: file.signature.clone(),
        loadable,
        why_not,
    }
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
        loadable(server, file).why_not
    }

    #[test]
    fn the_checks_come_in_nginx_s_order() {
        let good = loadable(&server(), &file());
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
        assert_eq!(loadable(&with_symbols, &needs("ngx_palloc")).loadable, Some(true));
        let open = loadable(&with_symbols, &needs("ndk_set_var_value"));
        assert_eq!(open.loadable, None);
        assert!(open.why_not.unwrap().ends_with("before it: ndk_set_var_value"));
        let unread = ModuleFile { signature: None, ..file() };
        assert_eq!(loadable(&server(), &unread).loadable, None);
    }
}
