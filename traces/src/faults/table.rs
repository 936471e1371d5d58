//! A table of outages, one a row: what a cluster's own log becomes, and what drawn faults are written as.
//!
//! | column | meaning |
//! |---|---|
//! | `from_s`, `lasts_s` | when it begins, and how long it lasts |
//! | `what` | `node`, `gpu`, `rack` or `switch` |
//! | `which` | name or number of the node, `NODE/GPU`, or number of the rack |
//! | `speed` | may be empty: nothing fails, but nodes work at this part of their speed |
//! | `loses_checkpoints` | may be missing: 1 where jobs begin again |

use std::fmt::Write as _;

use rota_core::cluster::Cluster;
use rota_core::ids::NodeId;
use rota_core::time::Span;

use super::{Kind, MOST_OUTAGES, Outage, Part, file};
use crate::error::InputError;
use crate::rows::{BadRows, Row, Rows};
use crate::source::Source;

const COLUMNS: [&str; 6] = ["from_s", "lasts_s", "what", "which", "speed", "loses_checkpoints"];

pub(super) fn read(source: &Source, cluster: &Cluster) -> Result<Vec<Outage>, InputError> {
    let rows = Rows::with_header(source)?;
    if let Some((column, heading)) = rows.unknown_column(&COLUMNS) {
        let what = format!("one of the columns {}", COLUMNS.join(", "));
        return Err(InputError::expected(&source.name, what).at_line(1).at_column(column).got(heading));
    }
    let needed = COLUMNS[..4].iter().map(|name| rows.need(&[name])).collect::<Result<Vec<_>, _>>()?;
    let (speed, checkpoints) = (rows.find(&COLUMNS[4..5]), rows.find(&COLUMNS[5..]));
    let mut outages = Vec::new();
    rows.each(BadRows::Refuse, |row| {
        if outages.len() >= MOST_OUTAGES {
            return Err(row.expected(0, format!("at most {MOST_OUTAGES} outages")));
        }
        outages.push(outage(row, &needed, speed, checkpoints, cluster)?);
        Ok(())
    })?;
    outages.sort_by_key(|outage| (outage.from, outage.what, outage.to));
    Ok(outages)
}

fn outage(
    row: &Row<'_>,
    needed: &[usize],
    speed: Option<usize>,
    checkpoints: Option<usize>,
    cluster: &Cluster,
) -> Result<Outage, InputError> {
    let [from, lasts, what, which] = *needed else { unreachable!("four columns are needed") };
    let start = row.arrival(from)?;
    let length = Span::from_secs_f64(row.run_time(lasts)?);
    let kind = match row.text(what) {
        "node" => Kind::Node,
        "gpu" => Kind::Gpu,
        "rack" | "switch" => Kind::Rack,
        _ => return Err(row.expected(what, "node, gpu, rack or switch")),
    };
    let part = part(kind, row.text(which), cluster).ok_or_else(|| row.expected(which, expected(kind)))?;
    let speed =
        row.maybe(speed).map(|(column, _)| row.positive(column).map(|speed| (column, speed))).transpose()?;
    if let Some((column, speed)) = speed {
        file::check_speed(kind, Some(speed))
            .map_err(|error| row.expected(column, error.problem.trim_start_matches("expected ")))?;
    }
    let loses_checkpoints = match row.maybe(checkpoints) {
        None | Some((_, "0")) => false,
        Some((_, "1")) => true,
        Some((column, _)) => return Err(row.expected(column, "1, 0 or nothing")),
    };
    Ok(Outage {
        from: start,
        to: start + length,
        what: part,
        speed: speed.map(|(_, s)| s),
        loses_checkpoints,
    })
}

/// A part of the cluster by its name or number.
pub(super) fn part(kind: Kind, text: &str, cluster: &Cluster) -> Option<Part> {
    let node = |text: &str| -> Option<NodeId> {
        let by_name = cluster.nodes().iter().find(|node| node.name == text).map(|node| node.id);
        by_name.or_else(|| cluster.node(NodeId(text.parse().ok()?)).map(|node| node.id))
    };
    match kind {
        Kind::Node => node(text).map(Part::Node),
        Kind::Gpu => {
            let (name, gpu) = text.rsplit_once('/')?;
            let (node, gpu) = (node(name)?, gpu.parse().ok()?);
            (gpu < cluster.node(node)?.n_gpus).then_some(Part::Gpu(node, gpu))
        }
        Kind::Rack => {
            let rack: u32 = text.parse().ok()?;
            cluster.nodes().iter().any(|node| node.rack == rack).then_some(Part::Rack(rack))
        }
    }
}

/// What a part of that kind is called.
pub(super) fn expected(kind: Kind) -> &'static str {
    match kind {
        Kind::Node => "the name or number of a node",
        Kind::Gpu => "a GPU of a node as NODE/GPU, with the number of the GPU on it",
        Kind::Rack => "the number of a rack",
    }
}

/// Writes outages as a table that can be read again.
pub fn write(outages: &[Outage]) -> String {
    let mut text = COLUMNS.join(",") + "\n";
    for outage in outages {
        let (what, which) = match outage.what {
            Part::Node(node) => ("node", node.to_string()),
            Part::Gpu(node, gpu) => ("gpu", format!("{node}/{gpu}")),
            Part::Rack(rack) => ("rack", rack.to_string()),
        };
        let speed = outage.speed.map(|speed| speed.to_string()).unwrap_or_default();
        let (from, lasts) = (outage.from, outage.to - outage.from);
        // Writing to a string cannot fail.
        let _ =
            writeln!(text, "{from},{lasts},{what},{which},{speed},{}", u8::from(outage.loses_checkpoints));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::FaultPlan;
    use super::*;
    use crate::cluster;
    use rota_core::time::Time;

    fn read_text(text: &str) -> Result<Vec<Outage>, String> {
        let cluster = cluster::load("small").expect("built in");
        read(&Source::new("faults.csv", text), &cluster).map_err(|e| e.to_string())
    }

    #[test]
    fn what_is_written_is_read_again() {
        let cluster = cluster::load("small").expect("built in");
        let text = "format = 1\n\
            [[failures]]\nof = \"node\"\nmtbf = \"2d\"\nrepair = \"1h\"\nloses_checkpoints = 0.5\n\
            [[failures]]\nof = \"gpu\"\nmtbf = \"9d\"\nrepair = \"1h\"\n\
            [[failures]]\nof = \"switch\"\nmtbf = \"9d\"\nrepair = \"1h\"\n\
            [[failures]]\nof = \"node\"\nmtbf = \"5d\"\nrepair = \"1h\"\nspeed = 0.5\n";
        let plan = FaultPlan::read(&Source::new("f.toml", text), &cluster).expect("sound");
        let outages = plan.drawn(&cluster, Time(30 * 86_400_000_000), 1).expect("drawn");
        assert!(outages.len() > 50 && outages.iter().any(|outage| outage.loses_checkpoints));
        assert_eq!(read_text(&write(&outages)), Ok(outages));
    }

    #[test]
    fn cells_that_make_no_sense_are_refused_with_their_place() {
        let head = "from_s,lasts_s,what,which,speed\n";
        for (row, expected) in [
            (
                "1,0,node,1,",
                "faults.csv:2, column 2 (lasts_s): got \"0\", expected a length of time greater than 0",
            ),
            (
                "-1,9,node,1,",
                "faults.csv:2, column 1 (from_s): got \"-1\", expected a time in seconds, not negative",
            ),
            (
                "1,9,disk,1,",
                "faults.csv:2, column 3 (what): got \"disk\", expected node, gpu, rack or switch",
            ),
            (
                "1,9,node,77,",
                "faults.csv:2, column 4 (which): got \"77\", expected the name or number of a node",
            ),
            (
                "1,9,gpu,1/8,",
                "faults.csv:2, column 4 (which): got \"1/8\", expected a GPU of a node as NODE/GPU, with the number of the GPU on it",
            ),
            (
                "1,9,node,1,1.5",
                "faults.csv:2, column 5 (speed): got \"1.5\", expected a part of full speed, more than 0 and less than 1",
            ),
        ] {
            assert_eq!(read_text(&format!("{head}{row}\n")).expect_err(row), expected);
        }
        assert!(read_text("from_s,lasts_s,what\n").is_err() && read_text(&format!("{head}1,9\n")).is_err());
    }
}
