//! Packed input: gzip, Zstandard, zip and Parquet, told apart by how the bytes begin, never by the file's name.

mod parquet;

use std::io::{Cursor, Read};

use crate::error::InputError;

/// How bytes are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// Not at all.
    Plain,
    /// gzip, of any number of members.
    Gzip,
    /// Zstandard, of any number of frames.
    Zstd,
    /// An archive, of which one file is wanted.
    Zip,
    /// A table by columns.
    Parquet,
}

/// How packed bytes begin.
const MAGIC: [(&[u8], Packing); 5] = [
    (b"\x1f\x8b", Packing::Gzip),
    (b"\x28\xb5\x2f\xfd", Packing::Zstd),
    (b"PK\x03\x04", Packing::Zip),
    (b"PK\x05\x06", Packing::Zip),
    (b"PAR1", Packing::Parquet),
];

/// Names that files may end in when they are packed.
pub(crate) const EXTENSIONS: [&str; 4] = [".gz", ".zst", ".zip", ".parquet"];

impl Packing {
    /// By the first bytes.
    pub(crate) fn of(first: &[u8]) -> Self {
        MAGIC
            .iter()
            .find(|(magic, _)| first.starts_with(magic))
            .map_or(Packing::Plain, |(_, packing)| *packing)
    }

    /// The unpacked bytes, for packings that can be read from front to back.
    pub(crate) fn stream<'r>(self, packed: impl Read + 'r) -> Option<std::io::Result<Box<dyn Read + 'r>>> {
        match self {
            Packing::Plain => Some(Ok(Box::new(packed))),
            Packing::Gzip => Some(Ok(Box::new(flate2::read::MultiGzDecoder::new(packed)))),
            Packing::Zstd => Some(
                zstd::stream::read::Decoder::new(packed).map(|unpacked| Box::new(unpacked) as Box<dyn Read>),
            ),
            Packing::Zip | Packing::Parquet => None,
        }
    }
}

/// Unpacks bytes that are here as a whole, to at most `most` bytes; `entry` is the file of an archive that is wanted. Answers with
/// the name of that file, if there is one, and its bytes.
pub(crate) fn unpack(
    name: &str,
    bytes: Vec<u8>,
    entry: Option<&str>,
    most: u64,
) -> Result<(Option<String>, Vec<u8>), InputError> {
    let packing = Packing::of(&bytes);
    if entry.is_some() && packing != Packing::Zip {
        return Err(InputError::expected(name, "a zip archive, of which a file is wanted"));
    }
    match packing {
        Packing::Plain => Ok((None, bytes)),
        Packing::Zip => unzip(name, bytes, entry, most).map(|(entry, bytes)| (Some(entry), bytes)),
        Packing::Parquet => parquet::to_table(name, bytes, most).map(|table| (None, table)),
        Packing::Gzip | Packing::Zstd => {
            let unpacked =
                packing.stream(Cursor::new(bytes)).transpose().map_err(|e| unreadable(name, &e))?;
            let unpacked = unpacked.ok_or_else(|| InputError::problem(name, "cannot be unpacked"))?;
            read_all(name, unpacked, most).map(|bytes| (None, bytes))
        }
    }
}

/// Reads to the end, or to where it is too much.
pub(crate) fn read_all(name: &str, reader: impl Read, most: u64) -> Result<Vec<u8>, InputError> {
    let mut bytes = Vec::new();
    reader.take(most + 1).read_to_end(&mut bytes).map_err(|e| unreadable(name, &e))?;
    match bytes.len() as u64 > most {
        true => Err(InputError::expected(name, format!("at most {most} bytes"))),
        false => Ok(bytes),
    }
}

pub(crate) fn unreadable(name: &str, error: &std::io::Error) -> InputError {
    InputError::problem(name, format!("cannot be read: {error}"))
}

fn unzip(
    name: &str,
    bytes: Vec<u8>,
    entry: Option<&str>,
    most: u64,
) -> Result<(String, Vec<u8>), InputError> {
    let wrong = |e: zip::result::ZipError| InputError::problem(name, format!("cannot be unpacked: {e}"));
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(wrong)?;
    // Archives made on a Mac hold a hidden twin of every file.
    let is_file =
        |name: &String| !name.ends_with('/') && !name.split('/').any(|part| part.starts_with(['.', '_']));
    let names: Result<Vec<String>, _> = archive.file_names().map(|name| name.map(String::from)).collect();
    let files: Vec<String> = names.map_err(wrong)?.into_iter().filter(is_file).collect();
    let wanted = match (entry, files.as_slice()) {
        (Some(entry), _) if files.iter().any(|file| file == entry) => entry.to_owned(),
        (None, [only]) => only.clone(),
        (_, []) => return Err(InputError::expected(name, "an archive with a file in it")),
        (_, all) => {
            let example = format!("{name}/{}", all[0]);
            let what =
                format!("the name of one file of the archive, as in {example}; it holds {}", all.join(", "));
            let wrong = InputError::expected(name, what);
            return Err(match entry {
                Some(entry) => wrong.got(entry),
                None => wrong,
            });
        }
    };
    let file = archive.by_name(&wanted).map_err(wrong)?;
    let bytes = read_all(name, file, most)?;
    Ok((wanted, bytes))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const MOST: u64 = 1_000_000;

    fn zipped(files: &[(&str, &str)]) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, text) in files {
            writer.start_file(*name, zip::write::SimpleFileOptions::default()).expect("a file");
            writer.write_all(text.as_bytes()).expect("written");
        }
        writer.finish().expect("an archive").into_inner()
    }

    #[test]
    fn every_packing_gives_back_what_was_packed() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"a,b\n").expect("written");
        let zstd = zstd::stream::encode_all(&b"a,b\n"[..], 1).expect("packed");
        for packed in [b"a,b\n".to_vec(), gzip.finish().expect("packed"), zstd, zipped(&[("x.csv", "a,b\n")])]
        {
            assert_eq!(unpack("t", packed, None, MOST).map(|(_, bytes)| bytes), Ok(b"a,b\n".to_vec()));
        }
    }

    #[test]
    fn a_file_of_an_archive_is_named_where_there_are_several() {
        let one = zipped(&[("d/", ""), ("d/jobs.csv", "a"), ("__MACOSX/d/._jobs.csv", "x")]);
        assert_eq!(unpack("t.zip", one, None, MOST), Ok((Some("d/jobs.csv".into()), b"a".to_vec())));
        let two = zipped(&[("a.csv", "a"), ("b.csv", "b")]);
        assert_eq!(
            unpack("t.zip", two.clone(), Some("b.csv"), MOST).map(|(_, bytes)| bytes),
            Ok(b"b".to_vec())
        );
        let error = unpack("t.zip", two, None, MOST).expect_err("which?").to_string();
        assert_eq!(
            error,
            "t.zip: expected the name of one file of the archive, as in t.zip/a.csv; it holds a.csv, b.csv"
        );
    }

    #[test]
    fn what_unpacks_to_too_much_is_refused() {
        let packed = zstd::stream::encode_all(&vec![b' '; 2_000_000][..], 1).expect("packed");
        assert!(packed.len() < 1_000);
        let error = unpack("t.zst", packed, None, MOST).expect_err("too much").to_string();
        assert_eq!(error, "t.zst: expected at most 1000000 bytes");
    }

    fn parquet_file() -> Vec<u8> {
        use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
        let schema = "message t { required binary id (UTF8); required int64 at (TIMESTAMP(MILLIS,true)); optional double h; }";
        let schema = ::parquet::schema::parser::parse_message_type(schema).expect("a schema");
        let mut file = Vec::new();
        let properties = ::parquet::file::properties::WriterProperties::builder()
            .set_compression(::parquet::basic::Compression::SNAPPY)
            .build();
        let mut writer =
            ::parquet::file::writer::SerializedFileWriter::new(&mut file, schema.into(), properties.into())
                .expect("a writer");
        let mut rows = writer.next_row_group().expect("rows");
        let mut column = rows.next_column().expect("sound").expect("a column");
        let names = [ByteArray::from("a,b"), ByteArray::from("c")];
        column.typed::<ByteArrayType>().write_batch(&names, None, None).expect("written");
        column.close().expect("closed");
        let mut column = rows.next_column().expect("sound").expect("a column");
        column.typed::<Int64Type>().write_batch(&[0, 1_507_532_515_000], None, None).expect("written");
        column.close().expect("closed");
        let mut column = rows.next_column().expect("sound").expect("a column");
        column.typed::<DoubleType>().write_batch(&[1.5], Some(&[1, 0]), None).expect("written");
        column.close().expect("closed");
        rows.close().expect("closed");
        writer.close().expect("closed");
        file
    }

    #[test]
    fn a_parquet_file_is_a_table_with_dates_and_empty_cells() {
        let table = unpack("t.parquet", parquet_file(), None, MOST).expect("a table").1;
        assert_eq!(
            String::from_utf8(table).expect("text"),
            "id,at,h\n\"a,b\",1970-01-01 00:00:00,1.5\nc,2017-10-09 07:01:55,\n"
        );
    }

    proptest::proptest! {
        #[test]
        fn bytes_that_only_begin_like_packed_ones_never_panic(which in 0..MAGIC.len(), rest in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            let bytes = [MAGIC[which].0, &rest].concat();
            if let Ok((_, unpacked)) = unpack("t", bytes, None, MOST) {
                assert!(unpacked.len() as u64 <= MOST);
            }
        }

        #[test]
        fn spoilt_archives_never_panic(at in 0..120usize, byte in proptest::prelude::any::<u8>(), cut in 0..200usize) {
            let mut bytes = zipped(&[("a.csv", "job_id,arrival_s\n")]);
            let n = bytes.len();
            bytes[at % n] = byte;
            bytes.truncate(n.saturating_sub(cut % 40));
            drop(unpack("t.zip", bytes, None, MOST));
        }

        #[test]
        fn spoilt_parquet_files_never_panic(spoils in proptest::collection::vec((4..1000usize, proptest::prelude::any::<u8>()), 1..4)) {
            let mut bytes = parquet_file();
            let n = bytes.len();
            spoils.iter().for_each(|(at, byte)| bytes[at % n] = *byte);
            drop(unpack("t.parquet", bytes, None, MOST));
        }
    }
}
