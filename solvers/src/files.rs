//! The one file of this crate that reads and writes files: models as `.mps` or `.lp`, either also `.gz`.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::error::{ModelError, ReadError};
use crate::format::{read_lp, read_mps, write_lp, write_mps};
use crate::model::Model;

/// The most bytes a model may have once unpacked.
pub const MOST_BYTES: u64 = 1 << 30;

/// Which text a model is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// MPS, free or fixed.
    Mps,
    /// LP text.
    Lp,
}

/// What went wrong with a model file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system says no.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file that was to be read or written.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The name does not say which format it is.
    #[error("{}: the name ends neither in .mps nor in .lp (or those with .gz)", path.display())]
    UnknownFormat {
        /// The file that was named.
        path: PathBuf,
    },
    /// The contents are no model.
    #[error("{}: {source}", path.display())]
    Contents {
        /// The file that was read.
        path: PathBuf,
        /// What is wrong with them.
        source: BytesError,
    },
    /// The model cannot be said in the format.
    #[error("{}: {source}", path.display())]
    Model {
        /// The file that was to be written.
        path: PathBuf,
        /// Why not.
        source: ModelError,
    },
}

/// Bytes that are no model.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum BytesError {
    /// Text, but not of a model.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Not text.
    #[error("byte {at} is not UTF-8 text")]
    NotText {
        /// The first byte that is none.
        at: usize,
    },
    /// Damaged compression.
    #[error("the gzip data are damaged: {why}")]
    Gzip {
        /// What the unpacker says.
        why: String,
    },
    /// More than [`MOST_BYTES`] once unpacked.
    #[error("more than {MOST_BYTES} bytes once unpacked")]
    TooLarge,
}

/// Reads a model file; the format follows from its name, compression from its first bytes.
pub fn read_model(path: &Path) -> Result<Model, FileError> {
    let (format, _) = format_of(path)?;
    let bytes = std::fs::read(path).map_err(|source| FileError::Io { path: path.into(), source })?;
    model_from_bytes(&bytes, format).map_err(|source| FileError::Contents { path: path.into(), source })
}

/// Writes a model file in the format and compression its name says.
pub fn write_model(path: &Path, model: &Model) -> Result<(), FileError> {
    let (format, is_packed) = format_of(path)?;
    let text = match format {
        Format::Mps => write_mps(model),
        Format::Lp => write_lp(model).map_err(|source| FileError::Model { path: path.into(), source })?,
    };
    let bytes = if is_packed { packed(&text) } else { Ok(text.into_bytes()) };
    bytes
        .and_then(|bytes| std::fs::write(path, bytes))
        .map_err(|source| FileError::Io { path: path.into(), source })
}

/// Parses a model from bytes, unpacking them if they are gzip.
pub fn model_from_bytes(bytes: &[u8], format: Format) -> Result<Model, BytesError> {
    let unpacked;
    let bytes = if bytes.starts_with(&[0x1f, 0x8b]) {
        unpacked = unpack(bytes)?;
        &unpacked
    } else {
        bytes
    };
    let text = std::str::from_utf8(bytes).map_err(|error| BytesError::NotText { at: error.valid_up_to() })?;
    Ok(match format {
        Format::Mps => read_mps(text)?,
        Format::Lp => read_lp(text)?,
    })
}

fn unpack(bytes: &[u8]) -> Result<Vec<u8>, BytesError> {
    let mut out = Vec::new();
    MultiGzDecoder::new(bytes)
        .take(MOST_BYTES + 1)
        .read_to_end(&mut out)
        .map_err(|error| BytesError::Gzip { why: error.to_string() })?;
    if out.len() as u64 > MOST_BYTES { Err(BytesError::TooLarge) } else { Ok(out) }
}

fn packed(text: &str) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes())?;
    encoder.finish()
}

fn format_of(path: &Path) -> Result<(Format, bool), FileError> {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let (stem, is_packed) = match name.strip_suffix(".gz") {
        Some(stem) => (stem, true),
        None => (&*name, false),
    };
    if stem.ends_with(".mps") {
        Ok((Format::Mps, is_packed))
    } else if stem.ends_with(".lp") {
        Ok((Format::Lp, is_packed))
    } else {
        Err(FileError::UnknownFormat { path: path.into() })
    }
}
