use super::*;
use crate::image::Input;
use crate::limits::Limits;
use object::write::Object;
use object::{Architecture, BinaryFormat, Endianness, SectionKind};

/// A file with these strings in its read-only data.
fn image(texts: &[&str]) -> Image {
    let mut bytes = Vec::new();
    for text in texts {
        bytes.extend(text.as_bytes());
        bytes.push(0);
    }
    of_bytes(&bytes)
}

fn of_bytes(bytes: &[u8]) -> Image {
    let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let section = object.add_section(Vec::new(), ".rodata".into(), SectionKind::ReadOnlyData);
    object.append_section_data(section, bytes, 1);
    Image::open(Input::memory(object.write().unwrap()), &Limits::default()).unwrap()
}

fn one(texts: &[&str]) -> Found {
    let mut all = read(&image(texts), None);
    assert_eq!(all.found.len(), 1, "{:?}", all.found);
    all.found.remove(0)
}

fn value<'a>(found: &'a Found, key: &str) -> &'a str {
    found.strings.iter().find(|s| s.key == key).map_or("", |s| s.value.as_str())
}

fn flag_level(found: &Found) -> Level {
    found.flags.as_ref().map_or(Level::Unknown, |flags| flags.level.level)
}

const HAPROXY: &str = "Build options :\n  TARGET  = linux-glibc\n  CPU     = generic\n  CC      = cc\n  CFLAGS  = -O2 -g -O0 -Wall\n  \
    OPTIONS = USE_PCRE2=1\n  DEBUG   = -DDEBUG_STRICT\n\nFeature list : +EPOLL -KQUEUE\n\nDefault settings :\n  bufsize = %d\n\n";

#[test]
fn haproxy() {
    let found = one(&["x", " version 2.6.12-1+deb12u4, released 2026/10/17", HAPROXY]);
    assert_eq!((found.program, found.version.as_deref()), ("haproxy", Some("2.6.12-1+deb12u4")));
    assert_eq!(value(&found, "TARGET"), "linux-glibc");
    assert_eq!(value(&found, "features"), "+EPOLL -KQUEUE");
    assert!(!found.strings.iter().any(|s| s.key.contains("bufsize")));
    let flags = found.flags.as_ref().unwrap();
    assert_eq!((flags.level.level, flags.level.overridden.as_slice()), (Level::O0, &["-O2".to_owned()][..]));
    assert_eq!(flags.at.offset, 2 + 47);
    // All its flags are there: without any -O the compiler does not optimize.
    assert_eq!(flag_level(&one(&[&HAPROXY.replace("-O2 -g -O0 -Wall", "-g")])), Level::O0);
}

const PG_CONFIGURE: &str =
    " '--build=x86_64-linux-gnu' '--prefix=/usr' 'CFLAGS=-g -O3' 'LDFLAGS=-Wl,-z,relro'";
const PG_CFLAGS: &str = "-Wall -Wmissing-prototypes -Wpointer-arith -fno-strict-aliasing -fwrapv -g -O2";
const PG_VERSION: &str = "PostgreSQL 15.20 (Debian 15.20-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc";

#[test]
fn postgresql() {
    let found = one(&[PG_CONFIGURE, "-D_GNU_SOURCE", PG_CFLAGS, "-lpgcommon -lpgport", PG_VERSION]);
    assert_eq!((found.program, found.version.as_deref()), ("postgresql", Some("15.20")));
    // What configure made of the flags counts, not what it was given.
    assert_eq!((value(&found, "CFLAGS"), flag_level(&found)), (PG_CFLAGS, Level::O2));
    assert_eq!(value(&found, "LDFLAGS"), "-Wl,-z,relro");
    assert_eq!(found.assertions, Some(false));
    let with = one(&[&format!("{PG_CONFIGURE} '--enable-cassert'"), PG_CFLAGS, PG_VERSION]);
    assert_eq!(with.assertions, Some(true));
    // A client names the version, and its own program has another configure line.
    assert!(read(&image(&["psql (PostgreSQL) 15.20", PG_VERSION]), None).found.is_empty());
}

#[test]
fn strings_that_lie_side_by_side_are_no_configure_line() {
    // A program that knows these words, compiled by rustc, which puts no NUL between strings.
    for text in [
        "--enable-cassertInvalidTimeCountGeneral_Category",
        "'--build='--prefix='--enable-PostgreSQL postgresqlversionCFLAGS-Wmissing-prototypes-fwrapv' 'BIND Knot DNS",
        "'--prefix='--enable-cassert' 'and what follows it'",
        "Knot DNS \n    CFLAGS:haproxy, released 20Build options :\n\n  TARGETFeature list :",
        "(BEAM) emulator version ) emulator version -DPOSIX_THREADS",
        "ProFTPD Version 1  Built With:\nconfigure ",
    ] {
        let found = read(&image(&[text, PG_VERSION, "Squid Cache: Version %s"]), None).found;
        assert!(found.is_empty(), "{text}: {found:?}");
    }
}

const OPENSSL: [&str; 4] = [
    "OpenSSL 3.0.22 25 Aug 2026",
    "platform: debian-amd64",
    "built on: Wed Oct 21 09:54:24 2026 UTC",
    "compiler: gcc -fPIC -pthread -m64 -g -O2 -DOPENSSL_PIC -DNDEBUG",
];

#[test]
fn openssl_speaks_for_itself_alone() {
    let library = read(&image(&OPENSSL), Some("libcrypto.so.3"));
    let found = &library.found[0];
    assert_eq!((found.program, found.version.as_deref()), ("openssl", Some("3.0.22")));
    assert_eq!(value(found, "platform"), "debian-amd64");
    assert_eq!(value(found, "built on"), "Wed Oct 21 09:54:24 2026 UTC");
    assert_eq!((library.claims()[0].scope, library.program().unwrap().program), (Scope::File, "openssl"));
    // The same text in another program.
    let inside = read(&image(&[&OPENSSL[..], &[HAPROXY]].concat()), None);
    assert_eq!(inside.program().unwrap().program, "haproxy");
    let claims = inside.claims();
    assert_eq!(
        claims.iter().map(|c| (c.value.as_str().unwrap(), c.scope)).collect::<Vec<_>>(),
        [("O0", Scope::File), ("O2", Scope::Some)]
    );
    // Another program that prints its compiler.
    assert!(read(&image(&["compiler: gcc -O0", OPENSSL[0]]), None).found.is_empty());
}

#[test]
fn ffmpeg() {
    let line = "--prefix=/usr --toolchain=hardened --extra-cflags='-g -O0' --enable-gpl";
    let found = one(&["FFmpeg version 5.1.9-0+deb12u1", "%sbuilt with %s\n", line]);
    assert_eq!((found.program, found.version.as_deref()), ("ffmpeg", Some("5.1.9-0+deb12u1")));
    assert_eq!((value(&found, "configure"), value(&found, "extra-cflags")), (line, "-g -O0"));
    // The script adds its own level after it.
    assert_eq!(flag_level(&found), Level::Unknown);
    let opt = one(&["%sbuilt with %s\n", "--optflags='-O1 -g' --enable-gpl"]);
    assert_eq!(flag_level(&opt), Level::O1);
    assert_eq!(flag_level(&one(&["%sbuilt with %s\n", "--enable-small"])), Level::Os);
    let texts = ["libavutil license: GPL version 2 or later", "--enable-gpl"];
    assert!(read(&image(&texts), Some("libavutil.so.57")).found[0].is_file_itself);
    assert!(!read(&image(&texts), None).found[0].is_file_itself);
}

const CONFIGURE: &str = " '--build=x86_64-linux-gnu' '--prefix=/usr' 'CFLAGS=-g -O2 -fPIC' 'CXXFLAGS=-g -O1' 'CPPFLAGS=-D_FORTIFY_SOURCE=2'";

#[test]
fn programs_that_carry_their_configure_line() {
    for (mark, program, version, level) in [
        (
            "named version: BIND 9.18.49-1~deb12u3-Debian <>",
            "bind",
            Some("9.18.49-1~deb12u3-Debian"),
            Level::O2,
        ),
        ("BIND 9.16.1 (Stable Release)", "bind", Some("9.16.1"), Level::O2),
        ("PowerDNS Authoritative Server", "powerdns", None, Level::O1),
        ("Squid Cache: Version %s\n", "squid", None, Level::O2),
        ("nothing known", "autoconf", None, Level::O2),
    ] {
        let found = one(&[mark, CONFIGURE]);
        assert_eq!(
            (found.program, found.version.as_deref(), flag_level(&found)),
            (program, version, level),
            "{mark}"
        );
        assert_eq!(value(&found, "configure"), CONFIGURE.trim());
        assert_eq!(value(&found, "CPPFLAGS"), "-D_FORTIFY_SOURCE=2");
        assert_eq!(found.is_file_itself, program != "autoconf");
    }
    // Flags given to configure without a level: configure may have added one.
    assert_eq!(flag_level(&one(&["BIND 9.16.1", "'--build=x' 'CFLAGS=-g'"])), Level::Unknown);
    assert_eq!(one(&["Squid Cache: Version %s\n", "squid/5.7", CONFIGURE]).version.as_deref(), Some("5.7"));
    let quoted =
        r#"" '--build=x86_64-linux-gnu' 'CXXFLAGS=-g -O2 -DPACKAGEVERSION='\''"4.7.3-2.Debian"'\'''""#;
    let found = one(&["PowerDNS Authoritative Server", quoted]);
    assert_eq!((found.version.as_deref(), flag_level(&found)), (Some("4.7.3"), Level::O2));
}

#[test]
fn programs_with_labels() {
    let knot = one(&[
        "  Knot DNS 3.2.6\n\n    Target:   linux-gnu\n    Compiler: gcc\n    CFLAGS:   -g -O2 -Wall\n    LIBS:      -lx\n    Config:   500 MiB\n",
    ]);
    assert_eq!(
        (knot.program, knot.version.as_deref(), flag_level(&knot)),
        ("knot", Some("3.2.6"), Level::O2)
    );
    assert_eq!((value(&knot, "Compiler"), value(&knot, "LIBS")), ("gcc", "-lx"));
    let proftpd = one(&[
        "ProFTPD Version 1.3.8",
        "  Built With:\n    configure  '--prefix=/usr' 'CFLAGS=-g -O3'",
        "  CFLAGS: -g2 -g -O2",
        "  LDFLAGS: -Wl,-z,now",
    ]);
    assert_eq!(
        (proftpd.program, proftpd.version.as_deref(), flag_level(&proftpd)),
        ("proftpd", Some("1.3.8"), Level::O2)
    );
    assert_eq!(value(&proftpd, "configure"), "'--prefix=/usr' 'CFLAGS=-g -O3'");
    let varnish =
        one(&["varnish-7.1.1 revision 7cee1c58", "exec gcc -g -O2 -pthread -fpic -shared -Wl,-x -o %o %s"]);
    assert_eq!(
        (varnish.program, varnish.version.as_deref(), flag_level(&varnish)),
        ("varnish", Some("7.1.1"), Level::O2)
    );
    let unbound = one(&[
        "Configure line: %s\n",
        "unbound 1.17.1",
        "--build=x --with-libevent CFLAGS=-g -O2 LDFLAGS=-O0",
    ]);
    assert_eq!(
        (unbound.program, unbound.version.as_deref(), flag_level(&unbound)),
        ("unbound", Some("1.17.1"), Level::O2)
    );
    let erlang = one(&[
        "Erlang (%s) emulator version 13.1.5\n",
        "-Werror=undef -g -O2 -DUSE_THREADS -D_THREAD_SAFE -D_REENTRANT -DPOSIX_THREADS -DBEAMASM=1",
    ]);
    assert_eq!(
        (erlang.program, erlang.version.as_deref(), flag_level(&erlang)),
        ("erlang", Some("13.1.5"), Level::O2)
    );
}

#[test]
fn texts_across_the_borders_of_chunks() {
    let text = HAPROXY.as_bytes();
    for border in [1usize << 20, 2 << 20] {
        for back in [0, 1, 2, 10, text.len() - 1, text.len(), text.len() + 1] {
            let mut bytes = vec![0; border - back];
            bytes.extend(text);
            bytes.push(0);
            bytes.extend(vec![0; 3 << 20]);
            let all = read(&of_bytes(&bytes), None);
            assert_eq!(all.found.len(), 1, "{back} bytes before {border}");
            assert_eq!(all.found[0].at.offset, (border - back) as u64);
            assert_eq!(flag_level(&all.found[0]), Level::O0);
        }
    }
}

#[test]
fn a_mark_at_the_very_beginning_and_one_for_beginnings_only() {
    assert_eq!(one(&["Configure line: %s\n", "unbound 1.17.1", "--prefix=/"]).program, "unbound");
    assert!(
        read(&image(&["see Configure line: %s", "an unbound 1.17.1", "x --prefix=/"]), None).found.is_empty()
    );
}

#[test]
fn floods_and_data_without_ends_are_bounded() {
    let flood = [&b"'--build=\0squid/1\0BIND 9.\0".repeat(60_000)[..], HAPROXY.as_bytes()].concat();
    let start = std::time::Instant::now();
    let all = read(&of_bytes(&flood), None);
    assert!(all.found.iter().any(|found| found.program == "haproxy"), "a flood of other marks hides nothing");
    let endless = b"Build options :\n  TARGET = x\n'--build=".repeat(100_000);
    let found = read(&of_bytes(&endless), None);
    assert!(found.found.iter().all(|f| f.strings.iter().all(|s| s.value.len() <= 40 << 10)));
    assert!(start.elapsed().as_secs() < 20);
}

/// A program without section headers that says to have 1.5 MiB of constants.
fn program_of_constants() -> Vec<u8> {
    let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend([2, 0, 62, 0, 1, 0, 0, 0]);
    let (entry, headers) = (0u64, 64u64);
    bytes.extend(entry.to_le_bytes());
    bytes.extend(headers.to_le_bytes());
    bytes.extend([0; 12]);
    bytes.extend([64, 0, 56, 0, 1, 0, 64, 0, 0, 0, 0, 0]);
    bytes.extend([1, 0, 0, 0, 4, 0, 0, 0]);
    for word in [0u64, 0x40_0000, 0x40_0000, 3 << 19, 3 << 19, 0x1000] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.resize(3 << 19, b'x');
    bytes
}

/// The second window then has fewer bytes than are before its own part.
#[test]
fn a_file_cut_shortly_before_a_second_window_is_read_as_far_as_it_goes() {
    let bytes = program_of_constants();
    for size in [(1 << 20) - 10_000, (1 << 20) - 1, 1 << 20, (1 << 20) + 10_000] {
        let image = Image::open(Input::memory(&bytes[..size]), &Limits::default()).unwrap();
        assert!(read(&image, None).found.is_empty(), "{size}");
    }
}

#[test]
fn a_file_that_becomes_shorter_while_it_is_read_costs_no_more() {
    let file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut &file, &program_of_constants()).unwrap();
    let image = Image::open(Input::file(file.try_clone().unwrap()).unwrap(), &Limits::default()).unwrap();
    file.set_len((1 << 20) - 10_000).unwrap();
    assert!(read(&image, None).found.is_empty());
}
