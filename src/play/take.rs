//! What is shown as files to keep: the page and the folder that `rota simulate --out` would write for the same runs.

use std::fs;
use std::io::{Cursor, Write as _};

use rota_lab::report;
use rota_lab::results::Results;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::refusal::Refusal;
use crate::session::{Session, Shown};

/// What the folder is called in the archive.
const NAME: &str = "rota-play";

/// The report page.
pub(crate) fn report(session: &Session, shown: &Shown) -> Result<String, Refusal> {
    Ok(report::to_html(&results(session, shown)?)?)
}

/// The result folder, with its page, as a zip archive: `rota report`, `explain` and `diff` read it once it is unpacked.
pub(crate) fn folder(session: &Session, shown: &Shown) -> Result<Vec<u8>, Refusal> {
    let results = results(session, shown)?;
    let dir = tempfile::tempdir()?;
    results.write_files(dir.path())?;
    report::write_page(&results, dir.path())?;
    pack(dir.path()).map_err(Refusal::Pack)
}

fn results(session: &Session, shown: &Shown) -> Result<Results, Refusal> {
    let runs = shown.results.iter().map(|result| (**result).clone()).collect();
    let sources = shown.contenders.iter().flat_map(|contender| contender.sources.clone()).collect();
    Ok(session.bench.results(&shown.question.choices, &session.uploads(), sources, runs)?)
}

fn pack(dir: &std::path::Path) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
    let mut files = fs::read_dir(dir)?.collect::<Result<Vec<_>, _>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for file in files.iter().filter(|file| file.path().is_file()) {
        let name = format!("{NAME}/{}", file.file_name().to_string_lossy());
        archive.start_file(name, SimpleFileOptions::default())?;
        archive.write_all(&fs::read(file.path())?)?;
    }
    Ok(archive.finish()?.into_inner())
}
