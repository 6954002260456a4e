//! Every limit in one place. A limit that is hit is reported as a problem, never passed over.

/// Bounds on what one target may cost. All sizes are in bytes.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Largest section (or table) read whole.
    pub section_bytes: u64,
    /// Largest result of decompressing one section.
    pub inflated_bytes: u64,
    /// Most section headers read.
    pub sections: u64,
    /// Longest section name, unit name or string kept.
    pub string_bytes: usize,
    /// Most compilation units read.
    pub units: usize,
    /// Most DIE attributes visited by one walk over DIEs.
    pub die_attributes: u64,
    /// Most functions kept.
    pub functions: usize,
    /// Bytes of machine code decoded.
    pub code_bytes: u64,
    /// Most members of one archive.
    pub archive_members: usize,
    /// Longest text accepted on standard input that is not an ELF file.
    pub text_bytes: u64,
    /// Largest ELF file read from a stream (standard input, package member).
    pub stream_bytes: u64,
    /// Most bytes read from one package or layer after decompression.
    pub package_bytes: u64,
    /// Most entries of one package or layer.
    pub package_entries: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            section_bytes: 512 << 20,
            inflated_bytes: 1 << 30,
            sections: 1 << 20,
            string_bytes: 64 << 10,
            units: 1 << 20,
            die_attributes: 20_000_000,
            functions: 4_000_000,
            code_bytes: 256 << 20,
            archive_members: 100_000,
            text_bytes: 1 << 20,
            stream_bytes: 1 << 30,
            package_bytes: 8 << 30,
            package_entries: 1_000_000,
        }
    }
}
