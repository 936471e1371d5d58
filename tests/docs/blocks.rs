//! Code blocks of a document, and the marks that say what becomes of each.
//!
//! A mark is an HTML comment on the line above a block. Without one, a block without a language is run, and one with a language
//! is only read.
//!
//! | mark | |
//! |---|---|
//! | `<!-- file: NAME -->` | the block is written to this file |
//! | `<!-- edit: NAME -->` | the block's only line replaces the line of the file that begins with the same word |
//! | `<!-- long: WHY -->` | run with `ROTA_FULL=1` only |
//! | `<!-- not run: WHY -->` | never run: it needs a cluster, a GPU or files that are not here |
//! | `<!-- output -->` | what a command prints, or another text that nobody types |
//! | `<!-- transcript -->` | run, and what is printed is compared |

/// A block and what becomes of it.
#[derive(Debug)]
pub(crate) struct Block {
    /// Line of its first fence, from 1.
    pub(crate) line: usize,
    pub(crate) lines: Vec<String>,
    pub(crate) becomes: Becomes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Becomes {
    Run,
    RunInFull,
    Transcript,
    File(String),
    Edit(String),
    Nothing,
}

/// All blocks of a document.
pub(crate) fn blocks(name: &str, text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut mark: Option<String> = None;
    let mut is_open = false;
    for (index, line) in text.lines().enumerate() {
        if let Some(language) = line.strip_prefix("```") {
            if !is_open {
                let becomes = becomes(mark.take().as_deref(), language.trim(), name, index + 1);
                found.push(Block { line: index + 1, lines: Vec::new(), becomes });
            }
            is_open = !is_open;
        } else if is_open {
            let block = found.last_mut().expect("an open block");
            block.lines.push(line.to_owned());
        } else {
            let comment = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
            mark = comment.map(str::to_owned);
        }
    }
    assert!(!is_open, "{name}: the last block has no end");
    found
}

fn becomes(mark: Option<&str>, language: &str, name: &str, line: usize) -> Becomes {
    let (kind, rest) = mark.map_or(("", ""), |mark| mark.split_once(": ").unwrap_or((mark, "")));
    match (kind, rest) {
        ("file", file) if !file.is_empty() => Becomes::File(file.to_owned()),
        ("edit", file) if !file.is_empty() => Becomes::Edit(file.to_owned()),
        ("long", why) if !why.is_empty() => Becomes::RunInFull,
        ("not run", why) if !why.is_empty() => Becomes::Nothing,
        ("transcript", _) => Becomes::Transcript,
        ("output", _) => Becomes::Nothing,
        ("", _) if language.is_empty() => Becomes::Run,
        ("", _) => Becomes::Nothing,
        // Comments for other purposes, such as the list of claims.
        _ if !["file", "edit", "long", "not run"].contains(&kind) && !language.is_empty() => Becomes::Nothing,
        _ => panic!("{name}:{line}: the mark `{}` says nothing", mark.unwrap_or("")),
    }
}

impl Block {
    /// The commands that a reader types: prompts, and comments behind commands, are left out; a backslash joins lines.
    pub(crate) fn commands(&self) -> Vec<String> {
        let text = self.lines.join("\n").replace("\\\n", " ");
        let typed = |line: &str| {
            let line = line.trim().trim_start_matches("$ ");
            let line = line.split("  #").next().unwrap_or(line).trim();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        text.lines().map(typed).filter(|line| !line.is_empty()).collect()
    }
}

#[test]
fn marks_and_languages_decide() {
    let text = "```\n$ rota a \\\n    b   # why\n```\n<!-- file: x.rhai -->\n```rhai\n1\n```\n<!-- long: an hour -->\n```\nrota c\n```\n\
                ```rhai\n2\n```\n<!-- not run: no GPU -->\n```\nrota d\n```\n";
    let found = blocks("t.md", text);
    let becomes: Vec<_> = found.iter().map(|block| block.becomes.clone()).collect();
    let file = Becomes::File("x.rhai".into());
    assert_eq!(becomes, [Becomes::Run, file, Becomes::RunInFull, Becomes::Nothing, Becomes::Nothing]);
    assert_eq!(found[0].commands(), ["rota a b"]);
}
