//! Strings that hostile files carry in names, and that every format must carry as text.

/// Each is tried in every place where a string from a file can stand.
pub const NASTY: &[&str] = &[
    "",
    " ",
    "\0",
    "nul\0inside",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "line\nbreak",
    "carriage\rreturn",
    "\r\n::error::injected",
    "::set-output name=x::y",
    "##[error]legacy",
    "%0A::warning::twice",
    "100%",
    "tab\there",
    "\u{7f}\u{85}\u{9b}",
    "\u{fffd}\u{fffe}\u{ffff}\u{fdd0}\u{1fffe}",
    "\u{202e}cod.exe\u{202c}",
    "\u{200b}\u{200d}\u{2060}\u{feff}",
    "\u{2028}\u{2029}",
    "\u{e000}\u{10fffd}",
    "é e\u{301} 漢字 🦀 \u{1f468}\u{200d}\u{1f469}",
    "]]>",
    "<![CDATA[x]]>",
    "--> <!-- -->",
    "</script><script>document.title='owned'</script>",
    "<script>document.title='owned'</script>",
    "<!--<script>",
    "</style></title></textarea></svg></math>",
    "<img src=x onerror=\"document.title='owned'\">",
    "\" onfocus=\"document.title='owned'\" autofocus x=\"",
    "' onmouseover='document.title=1'",
    "javascript:document.title='owned'",
    "&lt;&amp;&#27;&#x0;&unknown;&",
    "\"",
    "'",
    "`",
    "``` fence",
    "a\\",
    "\\\"",
    "\\n",
    "{0} {{1}}",
    "[text](http://example.invalid/)",
    "![i](http://example.invalid/x.png)",
    "http://example.invalid/ www.example.invalid",
    "@everyone @here <!channel> <@U1>",
    "#1 GH-1 owner/name#1",
    "| cell | cell |",
    "|",
    "# heading",
    "- item\n- item",
    "***bold*** __bold__ ~~gone~~ $x$ :smile:",
    "../../../../etc/passwd",
    "/absolute/path with space",
    "container://image/bin",
    "file:///etc/passwd",
    "C:\\Windows\\x",
    "pid:12",
    "?query#fragment",
    "a,b:c=d;e",
    "{\"json\": [1]}",
    "\u{feff}bom",
    "$(touch x) `touch x` ${HOME}",
    "=1+1",
];

/// The table, and a few strings too long or too many for it: all bytes as Latin-1, a long name, and the lossy
/// decoding of bytes that are no UTF-8.
pub fn all() -> Vec<String> {
    let mut strings: Vec<String> = NASTY.iter().map(|text| (*text).to_owned()).collect();
    strings.push((0..=255u8).map(char::from).collect());
    strings.push("long".repeat(5000));
    strings.push(String::from_utf8_lossy(b"\xff\xfe\x80bad\xc3").into_owned());
    strings
}
