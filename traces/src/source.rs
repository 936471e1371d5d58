//! Text with a name: what every reader takes. The only place of this crate that opens files.

use std::io::Read;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::error::InputError;

/// A text and the name it goes by in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// For messages and for detection by extension: a path, or the name of a built-in.
    pub name: String,
    /// The whole content, unpacked, without a byte-order mark, with `\n` at the ends of lines.
    pub text: String,
}

/// Nothing larger is read: a file past this is a mistake, not a trace.
pub const MAX_BYTES: u64 = 4 << 30;

/// The path that means standard input.
pub const STANDARD_INPUT_PATH: &str = "-";

/// What standard input is called in messages.
pub const STANDARD_INPUT: &str = "standard input";

/// The first bytes of whatever gzip packed.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

impl Source {
    /// A text that is already here.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Source { name: name.into(), text: text.into() }
    }

    /// Reads a file; one that ends in `.gz` is unpacked. `-` is standard input.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        if path == Path::new(STANDARD_INPUT_PATH) {
            return Self::of_standard_input();
        }
        let name = path.display().to_string();
        let unreadable = |e: std::io::Error| InputError::problem(&name, format!("cannot be read: {e}"));
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let is_packed = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz"));
        let bytes = if is_packed {
            read_all(&name, flate2::read::MultiGzDecoder::new(file))?
        } else {
            read_all(&name, file)?
        };
        Self::from_bytes(name, bytes)
    }

    /// Reads standard input to its end. It has no name that could end in `.gz`: packed bytes are known by how they begin.
    fn of_standard_input() -> Result<Self, InputError> {
        let bytes = read_all(STANDARD_INPUT, std::io::stdin().lock())?;
        let bytes = if bytes.starts_with(&GZIP_MAGIC) {
            read_all(STANDARD_INPUT, flate2::read::MultiGzDecoder::new(bytes.as_slice()))?
        } else {
            bytes
        };
        Self::from_bytes(STANDARD_INPUT, bytes)
    }

    /// A built-in by its name, or a file. The last three only word the error: `expected a FILE file or one of the built-in
    /// BUILT_INS …`, found in `KIND`.
    pub(crate) fn find(
        name_or_path: &str,
        built_in: &[(&str, &str)],
        file: &str,
        kind: &str,
        built_ins: &str,
    ) -> Result<Self, InputError> {
        let path = Path::new(name_or_path);
        match built_in.iter().find(|(name, _)| *name == name_or_path) {
            Some((name, text)) => Ok(Source::new(*name, *text)),
            None if path.exists() => Source::open(path),
            None => {
                let names: Vec<_> = built_in.iter().map(|(name, _)| *name).collect();
                let what = format!("a {file} file or one of the built-in {built_ins} {}", names.join(", "));
                Err(InputError::expected(kind, what).got(name_or_path))
            }
        }
    }

    /// The content of one of Rota's own TOML files, whose format must be the only one this version reads.
    pub(crate) fn toml<T: DeserializeOwned>(&self, format: impl Fn(&T) -> u32) -> Result<T, InputError> {
        let file =
            toml::from_str(&self.text).map_err(|e| InputError::from_toml(&self.name, &self.text, &e))?;
        match format(&file) {
            1 => Ok(file),
            other => {
                let known = "format = 1, the only one this version reads";
                Err(InputError::expected(&self.name, known).at_name("format").got(other.to_string()))
            }
        }
    }

    /// Bytes that should be text; a byte-order mark is dropped.
    pub fn from_bytes(name: impl Into<String>, bytes: Vec<u8>) -> Result<Self, InputError> {
        let name = name.into();
        let text = String::from_utf8(bytes).map_err(|e| {
            let good = &e.as_bytes()[..e.utf8_error().valid_up_to()];
            let line = good.iter().filter(|b| **b == b'\n').count() as u64 + 1;
            InputError::expected(&name, "UTF-8 text").at_line(line)
        })?;
        let text = match text.strip_prefix('\u{feff}') {
            Some(rest) => rest.to_owned(),
            None => text,
        };
        Ok(Source { name, text: with_plain_line_ends(text) })
    }

    /// Whether the name ends in `extension`, packed or not.
    pub(crate) fn has_extension(&self, extension: &str) -> bool {
        let lower = self.name.to_ascii_lowercase();
        lower.trim_end_matches(".gz").ends_with(&format!(".{extension}"))
    }

    /// What stands between the cells of a table: blanks in `.txt` files, commas in all others. Standard input has no extension, so
    /// its first line decides.
    pub(crate) fn separator(&self) -> char {
        let first = || self.text.trim_start().lines().next().unwrap_or("");
        let has_blanks = || self.name == STANDARD_INPUT && !first().contains(',') && first().contains(' ');
        if self.has_extension("txt") || has_blanks() { ' ' } else { ',' }
    }

    /// The last part of the name without extensions: what a thing read from it is called.
    pub(crate) fn stem(&self) -> String {
        let file = self.name.rsplit(['/', '\\']).next().unwrap_or(&self.name);
        file.split('.').next().filter(|s| !s.is_empty()).unwrap_or(file).to_owned()
    }
}

/// The same with `\n` for `\r\n` and for a lone `\r`: all readers count lines alike then.
fn with_plain_line_ends(text: String) -> String {
    match text.contains('\r') {
        true => text.replace("\r\n", "\n").replace('\r', "\n"),
        false => text,
    }
}

fn read_all(name: &str, reader: impl Read) -> Result<Vec<u8>, InputError> {
    let mut bytes = Vec::new();
    let read = reader.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|e| InputError::problem(name, format!("cannot be read: {e}")))?;
    match bytes.len() as u64 {
        too_many if too_many > MAX_BYTES => {
            Err(InputError::expected(name, format!("at most {MAX_BYTES} bytes")))
        }
        _ => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_refused_with_their_line() {
        let error = Source::from_bytes("t.csv", b"a,b\n1,\xff\n".to_vec()).expect_err("no UTF-8");
        assert_eq!(error.to_string(), "t.csv:2: expected UTF-8 text");
        let marked = Source::from_bytes("t.csv", "\u{feff}a".into()).expect("text");
        assert_eq!(marked.text, "a");
    }

    #[test]
    fn packed_files_are_unpacked_and_absent_ones_named() {
        let path = std::env::temp_dir().join(format!("rota-source-{}.csv.gz", std::process::id()));
        let file = std::fs::File::create(&path).expect("a temporary file");
        let mut packer = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        std::io::Write::write_all(&mut packer, b"a,b\n")
            .and_then(|()| packer.finish().map(drop))
            .expect("written");
        let read = Source::open(&path);
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(read.as_ref().map(|s| s.text.as_str()), Ok("a,b\n"));
        assert!(read.is_ok_and(|s| s.has_extension("csv")));
        let error = Source::open(Path::new("/nowhere/at-all.csv")).expect_err("absent");
        assert!(error.to_string().starts_with("/nowhere/at-all.csv: cannot be read: "), "{error}");
    }

    #[test]
    fn standard_input_is_separated_as_its_first_line_is() {
        assert_eq!(Source::new(STANDARD_INPUT, "a b\n1 2\n").separator(), ' ');
        assert_eq!(Source::new(STANDARD_INPUT, "a,b c\n1,2\n").separator(), ',');
        assert_eq!(Source::new("t.csv", "a b\n1 2\n").separator(), ',');
        assert_eq!(Source::new("t.txt.gz", "a,b\n").separator(), ' ');
    }

    #[test]
    fn a_stem_is_the_bare_name() {
        assert_eq!(Source::new("a/b/philly.csv.gz", "").stem(), "philly");
        assert_eq!(Source::new("default", "").stem(), "default");
    }
}
