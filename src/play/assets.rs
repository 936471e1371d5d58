//! The page: what `npm run build` made of `web/`, built into the program. Users need no Node.

use std::borrow::Cow;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use include_dir::{Dir, include_dir};

static PAGE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../web/dist");

/// A file of the page by its path; the palette comes from the report's.
pub(crate) fn file(path: &str) -> Response {
    match page(path) {
        Some((kind, bytes)) => ([(header::CONTENT_TYPE, kind)], bytes.into_owned()).into_response(),
        None => (StatusCode::NOT_FOUND, "there is no such page\n").into_response(),
    }
}

/// A file of the pages by its path: its content type and its bytes. The head serves the same files.
pub fn page(path: &str) -> Option<(&'static str, Cow<'static, [u8]>)> {
    let name = path.trim_start_matches('/');
    let name = if name.is_empty() { "index.html" } else { name };
    if name == "colours.css" {
        let colours = rota_lab::report::colour_variables();
        return Some(("text/css; charset=utf-8", Cow::Owned(colours.into_bytes())));
    }
    let kind = match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    };
    PAGE.get_file(name).map(|file| (kind, Cow::Borrowed(file.contents())))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use sha2::{Digest, Sha256};

    use super::*;

    /// The files that the bundle is made of, as `web/build.mjs` lists them.
    fn sources(web: &Path) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = ["build.mjs", "package.json", "package-lock.json", "tsconfig.json"]
            .map(|name| web.join(name))
            .into();
        let mut folders = vec![web.join("src")];
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(folder).expect("sources").map(|entry| entry.expect("an entry").path());
            let (inner, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
            folders.extend(inner);
            found.extend(files);
        }
        // As text, because that is how the builder orders them.
        found.sort_by_key(|path| path.to_string_lossy().into_owned());
        found
    }

    /// Names and contents, as `web/build.mjs` hashes them.
    fn hash(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> String {
        let mut hash = Sha256::new();
        for (name, bytes) in files {
            hash.update(name.as_bytes());
            hash.update([0]);
            hash.update(bytes);
            hash.update([0]);
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_bundle_is_made_of_the_sources_that_are_there() {
        let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
        let source = |file: PathBuf| {
            let name = file.strip_prefix(&web).expect("below web").to_string_lossy().replace('\\', "/");
            (name, fs::read(&file).expect("a source"))
        };
        let mut made: Vec<(String, Vec<u8>)> = PAGE
            .files()
            .map(|file| (file.path().to_string_lossy().into_owned(), file.contents().to_vec()))
            .filter(|(name, _)| name != "sources.sha256")
            .collect();
        made.sort();
        let now =
            format!("{}  sources\n{}  bundle\n", hash(sources(&web).into_iter().map(source)), hash(made));
        let built = PAGE.get_file("sources.sha256").and_then(|file| file.contents_utf8()).unwrap_or("");
        assert_eq!(
            built, now,
            "web/dist is older than its sources, or was changed by hand: run `npm ci && npm run build` in web/ and commit web/dist"
        );
    }

    #[test]
    fn the_page_loads_nothing_from_elsewhere_and_lists_licences() {
        let text = |name: &str| PAGE.get_file(name).and_then(|file| file.contents_utf8()).expect("a text");
        for page in [text("index.html"), text("live.html")] {
            assert!(
                !page.contains("http") && !page.contains("<style") && !page.contains("onclick"),
                "{page}"
            );
        }
        for package in ["@codemirror/view", "uplot"] {
            assert!(text("LICENSES.txt").contains(package), "{package} has no licence");
        }
    }
}
