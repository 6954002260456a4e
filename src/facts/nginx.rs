//! What is known of a program of the nginx family.

use crate::evidence::{Held, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One configure argument, as nginx prints it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigureArgument {
    /// Name with its dashes: `--with-cc-opt`.
    pub name: String,
    /// Value; `null` if none was given, empty for `--name=`.
    pub value: Option<String>,
}

/// How a module is linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Linkage {
    /// Compiled in.
    Static,
    /// Built to be loaded.
    Dynamic,
}

/// Where a module comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModuleOrigin {
    /// The product's own source.
    Builtin,
    /// Shipped with the fork (OpenResty).
    Bundled,
    /// Added with `--add-module` or `--add-dynamic-module`.
    ThirdParty,
    /// In no upstream source and asked for by no option: a distribution's patch.
    DistroPatch,
    /// Cannot be told.
    Unknown,
}

/// One nginx module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Module {
    /// Symbol name: `ngx_http_gzip_static_module`.
    pub name: String,
    /// How it is linked.
    pub linkage: Linkage,
    /// Where it comes from.
    pub origin: ModuleOrigin,
    /// Who says so.
    pub sources: Vec<Source>,
}

/// OpenSSL as the program's texts name it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenSsl {
    /// Version of the headers at build time.
    pub built: Option<String>,
    /// Version at run time, known only from printed text.
    pub running: Option<String>,
}

/// The module signature, decoded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Signature {
    /// As in the file.
    pub raw: String,
    /// Flag name to value.
    pub flags: std::collections::BTreeMap<String, bool>,
    /// Built with `--with-compat`; `null` before 1.11.5.
    pub compat: Option<bool>,
}

/// A directive the binary knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Directive {
    /// Name.
    pub name: String,
    /// Module that owns it.
    pub module: String,
}

/// A dynamic module file held against the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DynamicModule {
    /// File.
    pub path: String,
    /// Module name.
    pub name: Option<String>,
    /// Version it was built for.
    pub version: Option<String>,
    /// Its signature.
    pub signature: Option<String>,
    /// Whether the server would load it.
    pub loadable: Option<bool>,
    /// The server's own reason for refusing it.
    pub why_not: Option<String>,
}

/// A configuration held against the build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Config {
    /// Files read.
    pub files: Vec<String>,
    /// Files named and not seen.
    pub not_seen: Vec<String>,
    /// What says that it is this one.
    #[serde(default)]
    pub chosen_by: ConfigChoice,
}

/// What says which configuration a program reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConfigChoice {
    /// The user of this program.
    #[default]
    Option,
    /// The command line of the running program (`-c` or `-p`).
    CommandLine,
    /// The path that was compiled in.
    BuiltIn,
}

/// What nginx-family programs carry.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Nginx {
    /// Arguments of `./configure`, in order; `null` where the text is missing.
    pub configure_arguments: Option<Vec<ConfigureArgument>>,
    /// The text as it stands in the file.
    pub configure_raw: Option<String>,
    /// The `built by` line.
    pub compiler_line: Option<String>,
    /// OpenSSL.
    pub openssl: OpenSsl,
    /// Modules, in the binary's own order, then dynamic ones named by configure arguments.
    pub modules: Option<Vec<Module>>,
    /// Modules of this version's default set that are not there.
    pub disabled: Vec<String>,
    /// The module signature.
    pub signature: Option<Signature>,
    /// `--with-debug`.
    pub debug: Held<bool>,
    /// Directives, where asked for.
    pub directives: Option<Vec<Directive>>,
    /// Dynamic modules held against this server.
    pub dynamic_modules: Vec<DynamicModule>,
    /// Configuration held against this build.
    pub config: Option<Config>,
    /// What the build can do and cannot, each proven on the binary: `threads`, `file_aio`, `pcre`, `pcre_jit`, `http_v2`,
    /// `http_v3`, `ktls`, `reuseport`, `upstream_keepalive_default`, `no_pool`, `lua_assertions`, `lua_abort_at_panic`.
    /// What nothing proves is not there.
    #[serde(default)]
    pub features: std::collections::BTreeMap<String, Held<bool>>,
    /// The configuration itself, for rules. Not part of the document.
    #[serde(skip)]
    pub config_model: Option<std::sync::Arc<crate::nginx::config::Model>>,
    /// What modules are held against, until they have been. Not part of the document.
    #[serde(skip)]
    pub server: Option<std::sync::Arc<crate::nginx::Server>>,
}
