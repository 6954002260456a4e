//! What the rest of the program knows and a policy is checked against.

/// Names a policy may use. An empty list means "not known here", and then nothing is checked against it.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// Rule ids.
    pub rules: &'a [&'a str],
    /// Symbol names of modules (`ngx_http_gzip_static_module`); asked for at most once, and only if a policy names modules.
    pub modules: &'a dyn Fn() -> Vec<String>,
    /// Options of nginx's configure, with their dashes; asked for only by `policy validate`.
    pub options: &'a dyn Fn() -> Vec<String>,
    /// Why no compiler ever records that flag, if none does.
    pub never_recorded: &'a dyn Fn(&str) -> Option<String>,
}

fn no_names() -> Vec<String> {
    Vec::new()
}

fn no_reason(_: &str) -> Option<String> {
    None
}

impl Known<'static> {
    /// Nothing is known: names of rules and modules are accepted as they are.
    pub fn nothing() -> Self {
        Self { rules: &[], modules: &no_names, options: &no_names, never_recorded: &no_reason }
    }
}
