//! Text with a name: what every reader takes. The only place of this crate that opens files.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::error::InputError;
use crate::format::ColumnMap;
use crate::pack::{self, Packing, read_all, unreadable};
use crate::plain_text::{PlainText, RowBytes};

/// A text and the name it goes by in messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// For messages and for detection by extension: a path, or the name of a built-in.
    pub name: String,
    /// The whole content, unpacked, without a byte-order mark, with `\n` at the ends of lines. Of a large table that
    /// [`Source::open_trace`] opened, its beginning.
    pub text: String,
    /// Where the rest is, if the text is only the beginning.
    rest: Option<LargeTable>,
    /// Which columns are which, where the user says so.
    columns: Option<ColumnMap>,
}

/// A table that is read from its file row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LargeTable {
    path: PathBuf,
    packing: Packing,
}

/// Nothing larger is held in memory: a file past this is a mistake, not a trace.
pub const MAX_BYTES: u64 = 4 << 30;

/// Tables in files larger than this are read row by row.
const LARGE_BYTES: u64 = 1 << 20;

/// So much of a large table is looked at to recognise it.
const BEGINNING_BYTES: u64 = 256 << 10;

/// The path that means standard input.
pub const STANDARD_INPUT_PATH: &str = "-";

/// What standard input is called in messages.
pub const STANDARD_INPUT: &str = "standard input";

impl Source {
    /// A text that is already here.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Source { name: name.into(), text: text.into(), rest: None, columns: None }
    }

    /// Reads a file and unpacks it (gzip, Zstandard, zip, Parquet). `-` is standard input, `a.zip/b.csv` a file of an archive.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        if path == Path::new(STANDARD_INPUT_PATH) {
            let packed = read_all(STANDARD_INPUT, std::io::stdin().lock(), MAX_BYTES)?;
            let (_, bytes) = pack::unpack(STANDARD_INPUT, packed, None, MAX_BYTES)?;
            return Self::from_bytes(STANDARD_INPUT, bytes);
        }
        let (path, entry) = archive_and_entry(path);
        let name = path.display().to_string();
        let file = File::open(&path).map_err(|e| unreadable(&name, &e))?;
        let packed = read_all(&name, file, MAX_BYTES)?;
        let (entry, bytes) = pack::unpack(&name, packed, entry.as_deref(), MAX_BYTES)?;
        Self::from_bytes(entry.map_or(name.clone(), |entry| format!("{name}/{entry}")), bytes)
    }

    /// The same for a trace: a large table is not held in memory, but read from its file row by row. What can be read only once (a
    /// pipe), JSON, archives and Parquet are held.
    pub fn open_trace(path: &Path) -> Result<Self, InputError> {
        let is_large = std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() > LARGE_BYTES);
        let large = if is_large { Self::open_large(path)? } else { None };
        large.map_or_else(|| Self::open(path), Ok)
    }

    fn open_large(path: &Path) -> Result<Option<Self>, InputError> {
        let name = path.display().to_string();
        let mut first = [0; 4];
        let file = File::open(path).map_err(|e| unreadable(&name, &e))?;
        file.take(4).read(&mut first).map_err(|e| unreadable(&name, &e))?;
        let rest = LargeTable { path: path.to_owned(), packing: Packing::of(&first) };
        if matches!(rest.packing, Packing::Zip | Packing::Parquet) {
            return Ok(None);
        }
        let beginning = rest.open(&name, RowBytes::default())?;
        let beginning = read_all(&name, beginning.take(BEGINNING_BYTES), BEGINNING_BYTES)?;
        // The last line may be cut, within a character too.
        let end = memchr::memrchr(b'\n', &beginning).map_or(beginning.len(), |at| at + 1);
        let text = String::from_utf8_lossy(&beginning[..end]).into_owned();
        let is_json = text.trim_start().starts_with(['[', '{']);
        Ok((!is_json).then_some(Source { rest: Some(rest), ..Source::new(name, text) }))
    }

    /// The same as a table whose columns the user has named.
    pub(crate) fn with_columns(self, columns: ColumnMap) -> Self {
        Source { columns: Some(columns), ..self }
    }

    /// Which columns are which, where the user says so.
    pub(crate) fn columns(&self) -> Option<&ColumnMap> {
        self.columns.as_ref()
    }

    /// All of a table, with plain line ends.
    pub(crate) fn lines(&self, row_bytes: RowBytes) -> Result<Box<dyn Read + '_>, InputError> {
        match &self.rest {
            Some(large) => large.open(&self.name, row_bytes),
            None => Ok(Box::new(PlainText::new(self.text.as_bytes(), row_bytes))),
        }
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
        Ok(Source::new(name, with_plain_line_ends(text)))
    }

    /// Whether the name ends in `extension`, packed or not.
    pub(crate) fn has_extension(&self, extension: &str) -> bool {
        let lower = self.name.to_ascii_lowercase();
        let packed = pack::EXTENSIONS.iter().find_map(|packed| lower.strip_suffix(packed));
        packed.unwrap_or(&lower).ends_with(&format!(".{extension}"))
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

impl LargeTable {
    fn open(&self, name: &str, row_bytes: RowBytes) -> Result<Box<dyn Read>, InputError> {
        let file = File::open(&self.path).map_err(|e| unreadable(name, &e))?;
        let unpacked =
            self.packing.stream(file).ok_or_else(|| InputError::problem(name, "cannot be read by rows"))?;
        let unpacked = unpacked.map_err(|e| unreadable(name, &e))?;
        Ok(Box::new(PlainText::new(unpacked, row_bytes)))
    }
}

/// A file, or an archive on the way to it and what is to be found there.
fn archive_and_entry(path: &Path) -> (PathBuf, Option<String>) {
    let archive = path.ancestors().skip(1).find(|parent| parent.is_file());
    let entry = archive.and_then(|archive| path.strip_prefix(archive).ok()?.to_str().map(str::to_owned));
    match (archive, entry) {
        (Some(archive), Some(entry)) => (archive.to_owned(), Some(entry)),
        _ => (path.to_owned(), None),
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
        assert_eq!(Source::new("t.txt.zst", "a,b\n").separator(), ' ');
    }

    #[test]
    fn a_stem_is_the_bare_name() {
        assert_eq!(Source::new("a/b/philly.csv.gz", "").stem(), "philly");
        assert_eq!(Source::new("default", "").stem(), "default");
    }

    #[test]
    fn a_large_table_is_the_same_by_rows_as_in_memory() {
        let folder = std::env::temp_dir().join(format!("rota-large-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let rows: String = (0..100_000).map(|n| format!("{n},\"x, y\",{}\r\n", n * 7)).collect();
        let text = format!("\u{feff}id,what,more\r\n{rows}");
        let (plain, packed) = (folder.join("t.csv"), folder.join("t.csv.zst"));
        std::fs::write(&plain, &text).expect("written");
        let mut noise = text.clone();
        noise.extend(
            (0..40_000u64)
                .map(|n| format!("{n},{:x},{:x}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15), n * n * n)),
        );
        std::fs::write(&packed, zstd::stream::encode_all(noise.as_bytes(), 1).expect("packed"))
            .expect("written");
        let all = |source: &Source| {
            let mut all = String::new();
            let mut lines = std::io::BufReader::new(source.lines(RowBytes::default()).expect("opened"));
            let mut n_rows = 0;
            while std::io::BufRead::read_line(&mut lines, &mut all).is_ok_and(|n| n > 0) && n_rows < 90_000 {
                n_rows += 1;
            }
            all
        };
        let (held, by_rows) = (Source::open(&plain), Source::open_trace(&plain));
        let by_rows = by_rows.expect("readable");
        assert!(by_rows.rest.is_some() && by_rows.text.len() < 300_000 && by_rows.text.starts_with("id,"));
        assert_eq!(all(&by_rows), all(&held.expect("readable")));
        let of_packed = Source::open_trace(&packed).expect("readable");
        assert_eq!(all(&of_packed), all(&by_rows));
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
