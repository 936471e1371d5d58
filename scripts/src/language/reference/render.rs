//! The table as people and editors read it: a Markdown page, and Rhai definition files.

use std::fmt::Write as _;

use super::{Entry, Kind};
use crate::language::engine;
use crate::language::limits::Limits;
use crate::policy::part::Stage;

/// Every type, field and verb a script can use.
pub fn entries() -> Vec<Entry> {
    engine::build(Limits::default()).2
}

/// The reference as a Markdown page.
pub fn reference() -> String {
    let entries = entries();
    let mut page = String::from(INTRODUCTION);
    let _ = writeln!(page, "\n## Functions\n");
    for entry in entries.iter().filter(|e| e.kind == Kind::Function) {
        let _ = writeln!(page, "- `{}`: {}", entry.signature, entry.doc);
    }
    for class in entries.iter().filter(|e| e.kind == Kind::Type) {
        let _ = writeln!(page, "\n## {}\n\n{}", class.signature, class.doc);
        for (title, kind) in [("Fields", Kind::Field), ("Verbs", Kind::Method)] {
            let members: Vec<&Entry> =
                entries.iter().filter(|e| e.kind == kind && e.owner == class.signature).collect();
            if !members.is_empty() {
                let _ = writeln!(page, "\n**{title}**\n");
            }
            for entry in members {
                let _ = writeln!(page, "- `{}`: {}", entry.signature, entry.doc);
            }
        }
    }
    let _ = writeln!(page, "\n{}", limits());
    page
}

const INTRODUCTION: &str = "\
# What a script can use

Generated from the registrations (`UPDATE_EXPECT=1 cargo test --release -p rota-scripts --test reference`); a test
keeps it true. The language is [Rhai](https://rhai.rs/book/): no clock, no files, no modules, no `eval`.

A script defines one or more stages as functions; a policy joins scripts by `+`, and stages that no script defines have
defaults (all jobs are admitted, order by priority and then arrival, fair shares, first fit):

| stage | returns |
|---|---|
| `fn admit(job, view)` | a Verdict: `accept()`, `decline(\"why\")`, `wait()`; asked for each job that arrived, in order of arrival |
| `fn order(jobs, now)` | a Queue, usually from `rank`, or an array of jobs |
| `fn allocate(view)` | a Fill (from `view.fill`) or a Plan |
| `fn place(job, nodes)` | a Placement, usually from `rank` over columns of nodes; asked once when the policy decides for the first time, it cannot use `this` |
| `fn place(view)` | the same, asked in every round, for placements that depend on more than the job and the nodes (`place_by`, `by_score`) |
| `fn decide(view)` | a Plan or a Fill: `order`, `allocate` and `place` at once |
| `fn level_model(problem)` | a Matrix of kinds of jobs and levels, asked for by `view.optimum`; `()` for proportional shares |
| `fn lease_model(problem)` | a Matrix of rows and leases, asked for by `term` of Leases; `()` for the packed plan |

Between rounds a stage remembers what it puts into `this`, a map of plain data: `this.rounds = (this.rounds ?? 0) + 1`.
The top level holds declarations only: `param(...)`, `steady()`, `no_preemption()`, `like(...)` and constants. Functions see no
variables and constants of it: what they share is a `param` or a function, `fn weights() { #{ ann: 3.0 } }`.

Where Rhai would go on silently, scripts differ from the Rhai book:

- Numbers compare exactly, infinite ones too. Comparing a number with a text, or a column with a text, is an
  error; anything may be compared with `()` by `==` and `!=`.
- `/` gives a float, also of whole numbers: `7 / 2` is 3.5, `(7 / 2).to_int()` is 3. There is no `/=`.
- A number and a text do not add up; a text and a number do: `\"GPUs: \" + 2`.
- `array.sort_by(|x| key)` sorts by a number, a text or an array of these, and keeps the order of equal ones;
  `array.sort(|a, b| ...)` must return a whole number.
- The functions that `filter`, `find`, `some`, `all`, `drain`, `retain`, `index_of` and `dedup` take must return true or false.
- A column is not a condition of an `if`: use `where`, or ask about all jobs with `sum`, `least` or `most`.
- Keys of a map are texts; `map.get(number)`, `map.set(number, value)`, `map.contains(number)`, `map.remove(number)` and
  `number in map` take a whole number, such as `job.id`.
- `to_int()` of what is not a number (NaN) is an error.

`rota policy check` compares every name in a script with this page, also in branches that no run takes. It also refuses a result that is
thrown away (`queue.reversed();`), a function of your own that hides a verb, or that looks like a stage and is called by nothing, a comparison
of a comparison (`1 < jobs.gpus < 8`) or of a number with a text, and a `switch` on a float among whole numbers. A run warns of the same, and of a
stage whose answer no other part asks for. Then `check` lets the policy decide made-up instants and run some hours of a small
cluster; a policy that says `steady()` must do there with rounds passed over what it does without.
";

fn limits() -> String {
    let limits = Limits::default();
    format!(
        "## Limits\n\nOf one decision, unless set otherwise: {} operations (a verb over jobs costs one for every 16 of \
         them), {} functions deep, {} variables, values of {} bytes of text, {} array elements and {} map entries, {} MB \
         of columns, {} MB of memory in all, {} MB copied (an array or a map is copied wherever it is read as a whole), {} printed \
         lines, {} KB remembered between rounds.",
        limits.operations,
        limits.call_depth,
        limits.variables,
        limits.string_bytes,
        limits.array_items,
        limits.map_entries,
        limits.column_bytes >> 20,
        limits.memory_bytes >> 20,
        limits.copied_bytes >> 20,
        limits.note_lines,
        limits.memory_text_bytes >> 10,
    )
}

/// A Rhai definition file, from which editors complete and explain.
pub fn definitions() -> String {
    let mut text = String::from("module static;\n");
    for entry in entries() {
        let line = match entry.kind {
            Kind::Type => continue,
            Kind::Function => format!("fn {};", definition(&entry.signature)),
            Kind::Field => {
                let (name, of) = entry.signature.split_once(": ").unwrap_or((&entry.signature, "?"));
                format!("fn get {name}(this: {}) -> {of};", entry.owner)
            }
            Kind::Method if entry.name().is_empty() => continue,
            Kind::Method => {
                let (name, rest) = entry.signature.split_once('(').unwrap_or((&entry.signature, ")"));
                let comma = if rest.starts_with(')') { "" } else { ", " };
                format!("fn {};", definition(&format!("{name}(this: {}{comma}{rest}", entry.owner)))
            }
        };
        let _ = write!(text, "\n/// {}\n{line}\n", entry.doc);
    }
    for stage in Stage::ALL {
        for form in stage.forms() {
            let (name, arguments) = (stage.name(), form.join(", "));
            let _ = write!(text, "\n/// A stage of a policy: define it.\nfn {name}({arguments});\n");
        }
    }
    text
}

/// Parameters without a type take anything; a definition file says so with a question mark.
fn definition(signature: &str) -> String {
    let Some((head, rest)) = signature.split_once('(') else { return signature.to_owned() };
    let (arguments, tail) = rest.split_once(')').unwrap_or((rest, ""));
    let typed = |argument: &str| match argument.trim() {
        "" => String::new(),
        "..." => "...: ?".to_owned(),
        a if a.contains(':') => a.to_owned(),
        a => format!("{a}: ?"),
    };
    let arguments: Vec<String> = arguments.split(',').map(typed).collect();
    let tail = if tail.is_empty() { " -> ()" } else { tail };
    format!("{head}({}){}", arguments.join(", "), tail.replace("-> value", "-> ?"))
}
