//! Names for modules of programs that hold none (before 1.9.11): the structures stand in the order in which `configure`
//! lists modules, each has a kind, and its directives are its own.

use super::catalogue::{self, Known};
use super::modules::Structure;
use super::version::{Family, Version};
use super::vocabulary;

/// What is known of one structure.
pub(super) struct Seen<'a> {
    pub(super) structure: &'a Structure,
    pub(super) directives: &'a [String],
}

/// The kind a module of that name has; `None` where the name does not tell.
pub(super) fn kind_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "ngx_conf_module" => "CONF",
        "ngx_http_module" | "ngx_mail_module" | "ngx_stream_module" | "ngx_events_module" => "CORE",
        "ngx_event_core_module"
        | "ngx_epoll_module"
        | "ngx_select_module"
        | "ngx_poll_module"
        | "ngx_rtsig_module"
        | "ngx_kqueue_module"
        | "ngx_devpoll_module"
        | "ngx_eventport_module"
        | "ngx_aio_module" => "EVNT",
        name if name.starts_with("ngx_http_") => "HTTP",
        name if name.starts_with("ngx_mail_") => "MAIL",
        name if name.starts_with("ngx_stream_") => "STRM",
        name if catalogue::known(name).is_some() => "CORE",
        _ => return None,
    })
}

/// How well a module of the catalogue fits a structure: 0 is not at all.
fn score(row: &Known, seen: &Seen<'_>, expected: bool) -> u32 {
    if kind_of(row.name) != Some(seen.structure.kind.as_str()) || !vocabulary::fits(row.name, seen.directives)
    {
        return 0;
    }
    // Directives of its own say more than a place in the order.
    let certain = if seen.directives.is_empty() { 2 } else { 5 };
    certain + u32::from(expected)
}

/// The assignment of names in order that fits best. A structure that no module of the version fits stays `None`.
pub(super) fn align(
    seen: &[Seen<'_>],
    family: Family,
    version: Version,
    expected: &[&str],
) -> Vec<Option<&'static str>> {
    let rows: Vec<&'static Known> =
        catalogue::in_order(version).filter(|row| row.exists_in(family, version)).collect();
    let wanted: Vec<bool> = rows.iter().map(|row| expected.contains(&row.name)).collect();
    let width = rows.len() + 1;
    // best[i * width + j]: the best sum for structures from i on and rows from j on.
    let mut best = vec![0u32; (seen.len() + 1) * width];
    let at = |i: usize, j: usize| i * width + j;
    for i in (0..seen.len()).rev() {
        for j in (0..rows.len()).rev() {
            let fit = score(rows[j], &seen[i], wanted[j]);
            let both = if fit > 0 { fit + best[at(i + 1, j + 1)] } else { 0 };
            best[at(i, j)] = both.max(best[at(i + 1, j)]).max(best[at(i, j + 1)]);
        }
    }
    let mut names = vec![None; seen.len()];
    let (mut i, mut j) = (0, 0);
    while i < seen.len() && j < rows.len() {
        let fit = score(rows[j], &seen[i], wanted[j]);
        if fit > 0 && best[at(i, j)] == fit + best[at(i + 1, j + 1)] {
            names[i] = Some(rows[j].name);
            i += 1;
            j += 1;
        } else if best[at(i, j)] == best[at(i, j + 1)] {
            j += 1;
        } else {
            i += 1;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_partys_module_between_known_ones() {
        let modules: [(&str, &[&str]); 7] = [
            ("CORE", &["daemon", "pid"]),
            ("CORE", &["http"]),
            ("HTTP", &["server", "location"]),
            ("HTTP", &["gzip_static"]),
            ("HTTP", &["echo", "echo_sleep"]),
            ("HTTP", &[]),
            ("HTTP", &["gzip", "gzip_types"]),
        ];
        let structures: Vec<Structure> = modules
            .iter()
            .map(|(kind, _)| Structure {
                address: 0,
                version: None,
                signature: None,
                commands: None,
                kind: (*kind).to_owned(),
                angie: false,
            })
            .collect();
        let directives: Vec<Vec<String>> =
            modules.iter().map(|(_, names)| names.iter().map(|n| (*n).to_owned()).collect()).collect();
        let seen: Vec<Seen<'_>> = structures
            .iter()
            .zip(&directives)
            .map(|(structure, directives)| Seen { structure, directives })
            .collect();
        let expected = ["ngx_http_write_filter_module"];
        assert_eq!(
            align(&seen, Family::Nginx, Version(1, 4, 7), &expected),
            [
                Some("ngx_core_module"),
                Some("ngx_http_module"),
                Some("ngx_http_core_module"),
                Some("ngx_http_gzip_static_module"),
                None,
                Some("ngx_http_write_filter_module"),
                Some("ngx_http_gzip_filter_module"),
            ]
        );
    }
}
