#![no_main]

#[path = "../../tests/mutations/targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    targets::nginx_conf(bytes);
});
