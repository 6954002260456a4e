//! How a running program of the family was started, and which configuration file that makes it read.
//!
//! The options are those of `ngx_get_options` and the paths those of `ngx_process_options` (`src/core/nginx.c`). The
//! master writes its title over its arguments (`nginx: master process ARGUMENTS`, joined by blanks), so that what
//! stood in one argument has to be told again from where the next option begins.

use super::configure::last_value;
use super::version::{self, Family, Version};
use crate::facts::{ConfigureArgument, Product};
use std::path::{Path, PathBuf};

/// The options that decide what is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Invocation {
    /// `-p`.
    pub prefix: Option<String>,
    /// `-c`.
    pub file: Option<String>,
    /// `-g`.
    pub directives: Option<String>,
}

/// A configuration file, and what goes with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The file, as an absolute path where the process is.
    pub file: PathBuf,
    /// Where relative paths start from, those of `load_module` too.
    pub prefix: PathBuf,
    /// Whether the command line names the file.
    pub by_command_line: bool,
    /// Directives of the command line.
    pub directives: Option<String>,
}

/// The options that a program was started with. `own` is its command line as the kernel gives it (`/proc/N/cmdline`),
/// `parent` that of the process it descends from, if that one runs the same file. Errors: why they cannot be told.
pub fn invocation(own: &[u8], parent: Option<&[u8]>) -> Result<Invocation, String> {
    match read(own)? {
        Some(found) => Ok(found),
        // A worker's title holds none; they are its master's.
        None => match parent {
            Some(parent) => read(parent)?.ok_or_else(|| "its parent is no master".to_owned()),
            None => Err("it is not the master, and its master cannot be read".to_owned()),
        },
    }
}

/// The options in a command line; `None` for the title of a process that is not the master.
fn read(command: &[u8]) -> Result<Option<Invocation>, String> {
    let end = command.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let command = command.get(..end).unwrap_or_default();
    let words: Vec<String> =
        command.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let Some(first) = words.first().filter(|first| !first.is_empty()) else {
        return Err("its command line is empty".to_owned());
    };
    let Some(title) = ["nginx: ", "angie: "].iter().find_map(|name| first.strip_prefix(name)) else {
        return options(words.get(1..).unwrap_or_default(), false).map(Some);
    };
    let joined = if first.starts_with("angie: ")
        && let Some((_, rest)) = title.split_once(" [")
    {
        // Angie: `master process v1.12.1 #1 [angie -c FILE]`.
        rest.strip_suffix(']').ok_or("its title is cut, so its arguments are not known")?
    } else if let Some(rest) = title.strip_prefix("master process ") {
        rest
    } else {
        return Ok(None);
    };
    let words: Vec<String> = joined.split(' ').skip(1).map(str::to_owned).collect();
    options(&words, true).map(Some)
}

/// What the words after the program's name ask for. `joined` tells that arguments which hold blanks were split at them.
fn options(words: &[String], joined: bool) -> Result<Invocation, String> {
    let mut out = Invocation::default();
    let mut rest = words.iter().peekable();
    while let Some(word) = rest.next() {
        let Some(letters) = word.strip_prefix('-') else {
            return Err(format!("its argument {word:?} is no option of nginx"));
        };
        let Some(at) = letters.find(['p', 'e', 'c', 'g', 's']) else { continue };
        let (_, taking) = letters.split_at(at);
        let (letter, value) = taking.split_at(1);
        let mut value = value.to_owned();
        if value.is_empty() {
            value = rest.next().cloned().ok_or_else(|| format!("its option -{letter} has no value"))?;
        }
        // Whatever comes before the next option belongs to the value: nginx takes nothing else. A directive can hold a
        // word that looks like an option, but ends with a semicolon.
        while joined
            && let Some(next) = rest
                .next_if(|next| !next.starts_with('-') || (letter == "g" && !value.trim_end().ends_with(';')))
        {
            value.push(' ');
            value.push_str(next);
        }
        match letter {
            "p" => out.prefix = Some(value),
            "c" => out.file = Some(value),
            "g" => out.directives = Some(value),
            _ => {}
        }
    }
    Ok(out)
}

impl Invocation {
    /// The file that a program of these configure arguments reads. `directory` is where it was started.
    /// Errors: why it cannot be told.
    pub fn configuration(
        &self,
        product: Option<&Product>,
        arguments: Option<&[ConfigureArgument]>,
        directory: Option<&Path>,
    ) -> Result<Chosen, String> {
        const UNKNOWN: &str = "the built-in path is not known: no configure arguments are in the file";
        let given = |name: &str| arguments.and_then(|list| last_value(list, name));
        let (own_prefix, own_file) = layout(product);
        let prefix = match (&self.prefix, given("--prefix"), arguments) {
            (Some(prefix), _, _) => Some(prefix.clone()),
            (None, Some(prefix), _) => Some(prefix.to_owned()),
            (None, None, Some(_)) => Some(own_prefix.to_owned()),
            (None, None, None) => None,
        };
        let file = match (&self.file, given("--conf-path").filter(|path| !path.is_empty()), arguments) {
            (Some(file), _, _) => file.clone(),
            (None, Some(path), _) => path.to_owned(),
            (None, None, Some(_)) => own_file.to_owned(),
            (None, None, None) => return Err(UNKNOWN.to_owned()),
        };
        // An empty prefix is the directory it was started in, and so is the start of a relative one.
        let prefix = match prefix {
            Some(prefix) if prefix.starts_with('/') => Some(PathBuf::from(prefix)),
            Some(prefix) => directory.map(|directory| directory.join(prefix)),
            None => None,
        };
        let file = match prefix.as_ref() {
            _ if file.starts_with('/') => PathBuf::from(file),
            Some(prefix) => prefix.join(file),
            None if arguments.is_none() => return Err(UNKNOWN.to_owned()),
            None => return Err("the directory it was started in is not known".to_owned()),
        };
        let plain = |path: PathBuf| path.components().collect::<PathBuf>();
        Ok(Chosen {
            prefix: plain(prefix.unwrap_or_else(|| PathBuf::from(own_prefix))),
            by_command_line: self.file.is_some() || self.prefix.is_some(),
            directives: self.directives.clone(),
            file: plain(file),
        })
    }
}

/// Where a program is installed and reads its configuration unless `configure` was told otherwise (`auto/configure`, `auto/options`
/// of nginx, Angie 1.4 to 1.12, Tengine: other names since 3.2.0).
pub fn layout(product: Option<&Product>) -> (&'static str, &'static str) {
    let own: Option<Version> = product.and_then(|p| p.version.as_deref()).and_then(|v| v.parse().ok());
    match version::family(product) {
        Family::Angie => ("/usr/local/angie", "conf/angie.conf"),
        Family::Tengine if own.is_some_and(|v| v >= Version(3, 2, 0)) => {
            ("/usr/local/tengine", "conf/tengine.conf")
        }
        _ => ("/usr/local/nginx", "conf/nginx.conf"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nginx::configure::parse;

    fn started(own: &[u8], parent: Option<&[u8]>) -> Result<Invocation, String> {
        invocation(own, parent)
    }

    #[expect(clippy::unnecessary_wraps, reason = "it stands for what `invocation` returns")]
    fn is(prefix: Option<&str>, file: Option<&str>, directives: Option<&str>) -> Result<Invocation, String> {
        let own = |text: Option<&str>| text.map(str::to_owned);
        Ok(Invocation { prefix: own(prefix), file: own(file), directives: own(directives) })
    }

    #[test]
    fn arguments_and_titles() {
        let file = Some("/etc/a.conf");
        assert_eq!(started(b"nginx\0", None), is(None, None, None));
        assert_eq!(
            started(b"nginx\0-c\0/etc/a.conf\0-g\0daemon off; user x;\0", None),
            is(None, file, Some("daemon off; user x;"))
        );
        assert_eq!(
            started(b"/x y/nginx\0-tqc/etc/a.conf\0-p\0/srv/a b\0-sreload\0", None),
            is(Some("/srv/a b"), file, None)
        );
        let title = b"nginx: master process /usr/sbin/nginx -g daemon on; master_process on;\0\0\0";
        assert_eq!(started(title, None), is(None, None, Some("daemon on; master_process on;")));
        let title = b"nginx: master process nginx -g env A=-c; -c /etc/a.conf -p /srv/a b";
        assert_eq!(started(title, None), is(Some("/srv/a b"), file, Some("env A=-c;")));
        assert_eq!(
            started(b"nginx: worker process", Some(b"nginx: master process nginx -c /etc/a.conf")),
            is(None, file, None)
        );
        let angie = b"angie: master process v1.12.1 #1 [/usr/sbin/angie -c /etc/a.conf]";
        assert_eq!(started(angie, None), is(None, file, None));
        for (own, parent) in [
            (&b"nginx: worker process"[..], None),
            (b"nginx: worker process", Some(&b"nginx: worker process"[..])),
            (b"nginx\0-c\0", None),
            (b"nginx\0conf\0", None),
            (b"angie: master process v1.12.1 #1 [/usr/sbin/angie -c /et", None),
            (b"", None),
            (b"\0\0", None),
        ] {
            assert!(started(own, parent).is_err(), "{}", String::from_utf8_lossy(own));
        }
    }

    fn file(
        invocation: &Invocation,
        arguments: Option<&str>,
        directory: Option<&str>,
    ) -> Result<String, String> {
        let list = arguments.map(|text| parse(text).list);
        let chosen = invocation.configuration(None, list.as_deref(), directory.map(Path::new))?;
        Ok(format!("{} {}", chosen.file.display(), chosen.prefix.display()))
    }

    #[test]
    fn paths_as_nginx_makes_them() {
        let plain = Invocation::default();
        let with = |prefix: Option<&str>, file: Option<&str>| is(prefix, file, None).unwrap();
        let debian = Some(" --prefix=/usr/share/nginx --conf-path=/etc/nginx/nginx.conf");
        let ok = |text: &str| Ok(text.to_owned());
        assert_eq!(file(&plain, Some(""), None), ok("/usr/local/nginx/conf/nginx.conf /usr/local/nginx"));
        assert_eq!(file(&plain, debian, None), ok("/etc/nginx/nginx.conf /usr/share/nginx"));
        // Not beside the working directory, nor beside the built-in file.
        assert_eq!(
            file(&with(None, Some("a.conf")), debian, Some("/w")),
            ok("/usr/share/nginx/a.conf /usr/share/nginx")
        );
        assert_eq!(file(&with(Some("/srv/x"), None), Some(""), None), ok("/srv/x/conf/nginx.conf /srv/x"));
        assert_eq!(file(&with(Some("/srv/x"), None), debian, None), ok("/etc/nginx/nginx.conf /srv/x"));
        assert_eq!(file(&with(Some("sub"), Some("a.conf")), debian, Some("/w")), ok("/w/sub/a.conf /w/sub"));
        assert_eq!(file(&plain, Some(" --prefix="), Some("/w")), ok("/w/conf/nginx.conf /w"));
        assert_eq!(file(&plain, Some(" --prefix=. --conf-path=a.conf"), Some("/w")), ok("/w/a.conf /w"));
        assert_eq!(file(&with(None, Some("/a.conf")), None, None), ok("/a.conf /usr/local/nginx"));
        assert!(file(&plain, None, Some("/w")).is_err());
        assert!(file(&with(Some("sub"), None), Some(""), None).is_err());
        assert!(file(&with(None, Some("a.conf")), None, Some("/w")).unwrap_err().contains("built-in"));
        let product = |line: &str| version::product(&[line]);
        let angie = product("Angie version: Angie/1.4.1");
        assert_eq!(layout(angie.as_ref()), ("/usr/local/angie", "conf/angie.conf"));
        assert_eq!(layout(product("nginx version: openresty/1.27.1.2").as_ref()).1, "conf/nginx.conf");
    }
}
