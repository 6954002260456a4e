//! From the words of the files to the directives of the model.

use super::lexer::{Lexed, Lexer, SyntaxError};
use super::source::{Found, Source};
use super::{Body, Directive, Model, NotSeen, Place};
use crate::limits::Limits;
use std::collections::HashMap;

/// Blocks in blocks (nginx itself has no bound).
const MAX_DEPTH: usize = 50;
/// Includes in includes.
const MAX_INCLUDES: usize = 40;

/// Blocks whose lines are keys with values: a name in them is never a directive.
const KEY_BLOCKS: [&str; 9] = [
    "types",
    "map",
    "geo",
    "split_clients",
    "match",
    "charset_map",
    "geoip2",
    "metric_complex_zone",
    "prometheus_template",
];

/// Why reading stopped.
pub(super) struct Stop {
    pub(super) code: &'static str,
    pub(super) message: String,
}

/// Where the reader is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Where {
    blocks: usize,
    includes: usize,
    keys: bool,
}

pub(super) struct Reader<'m> {
    source: Source,
    limits: &'m Limits,
    model: &'m mut Model,
    directives: usize,
    files: usize,
    indexes: HashMap<String, usize>,
}

impl<'m> Reader<'m> {
    pub(super) fn new(source: Source, model: &'m mut Model, limits: &'m Limits) -> Self {
        Self { source, limits, model, directives: 0, files: 0, indexes: HashMap::new() }
    }

    pub(super) fn file(
        &mut self,
        name: &str,
        bytes: &[u8],
        out: &mut Vec<Directive>,
        place: Where,
    ) -> Result<(), Stop> {
        self.files += 1;
        let most = self.limits.conf_files;
        if self.files > most {
            return limit(name, &format!("more than {most} files are included"));
        }
        let next = self.model.files.len();
        let file = *self.indexes.entry(name.to_owned()).or_insert(next);
        if file == next {
            self.model.files.push(name.to_owned());
        }
        let mut lexer = Lexer::new(bytes);
        self.block(&mut lexer, file as u32, out, place, false)
    }

    fn block(
        &mut self,
        lexer: &mut Lexer<'_>,
        file: u32,
        out: &mut Vec<Directive>,
        place: Where,
        in_block: bool,
    ) -> Result<(), Stop> {
        loop {
            let (mut words, at, opens) =
                match lexer.statement().map_err(|error| self.refused(file, &error))? {
                    Lexed::End if in_block => {
                        let what = "unexpected end of file, expecting \"}\"".to_owned();
                        return Err(self.refused(file, &SyntaxError { line: lexer.line(), what }));
                    }
                    Lexed::End => return Ok(()),
                    Lexed::Close if in_block => return Ok(()),
                    Lexed::Close => {
                        let what = "unexpected \"}\"".to_owned();
                        return Err(self.refused(file, &SyntaxError { line: lexer.line(), what }));
                    }
                    Lexed::Statement { words, line, column, opens } => {
                        (words, Place { file, line, column }, opens)
                    }
                };
            self.directives += 1;
            let most = self.limits.conf_directives;
            if self.directives > most {
                return limit(&self.name(file), &format!("more than {most} directives"));
            }
            let name = words.remove(0);
            let mut directive = Directive { name, args: words, at, body: Body::None };
            if opens {
                if place.blocks >= MAX_DEPTH {
                    return limit(&self.name(file), &format!("blocks nested more than {MAX_DEPTH} deep"));
                }
                let keys = place.keys || KEY_BLOCKS.contains(&directive.name.as_str());
                if directive.name.ends_with("_by_lua_block") {
                    lexer.skip_lua().map_err(|error| self.refused(file, &error))?;
                    directive.body = Body::Lua;
                } else {
                    let mut list = Vec::new();
                    let inner = Where { blocks: place.blocks + 1, keys, ..place };
                    let outcome = self.block(lexer, file, &mut list, inner, true);
                    directive.body = if keys { Body::Keys(list) } else { Body::Block(list) };
                    if outcome.is_err() {
                        // What was read up to the fault is kept.
                        out.push(directive);
                        return outcome;
                    }
                }
                out.push(directive);
            } else if directive.name == "include" && directive.args.len() == 1 {
                self.include(directive, out, place)?;
            } else {
                out.push(directive);
            }
        }
    }

    fn include(
        &mut self,
        mut directive: Directive,
        out: &mut Vec<Directive>,
        place: Where,
    ) -> Result<(), Stop> {
        let argument = directive.first().to_owned();
        let at = directive.at;
        if place.includes >= MAX_INCLUDES {
            return limit(&self.name(at.file), &format!("includes nested more than {MAX_INCLUDES} deep"));
        }
        match self.source.include(&argument) {
            Found::Texts(texts) => {
                out.push(directive);
                let inner = Where { includes: place.includes + 1, ..place };
                for (name, bytes) in texts {
                    self.file(&name, &bytes, out, inner)?;
                }
                Ok(())
            }
            Found::Missing(why) => {
                directive.body = Body::Unseen;
                out.push(directive);
                self.model.not_seen.push(NotSeen { path: argument, at, why });
                Ok(())
            }
            Found::TooMuch => limit(
                &self.name(at.file),
                &format!("the configuration is larger than {} bytes", self.limits.conf_bytes),
            ),
        }
    }

    fn name(&self, file: u32) -> String {
        self.model.files.get(file as usize).cloned().unwrap_or_default()
    }

    fn refused(&self, file: u32, error: &SyntaxError) -> Stop {
        Stop {
            code: "configuration-syntax",
            message: format!("{}:{}: {}; nothing after it was read", self.name(file), error.line, error.what),
        }
    }
}

fn limit(file: &str, why: &str) -> Result<(), Stop> {
    Err(Stop { code: "configuration-limit", message: format!("{file}: {why}; nothing after that was read") })
}
