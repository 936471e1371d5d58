//! Which traces run on which clusters: the scripts of the artifact as data.

use rota_core::time::Span;

use super::published::{EIGHT_B, SIX_B, TEN};
use super::{Published, published};

/// A cluster of like servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Servers of eight GPUs.
    pub nodes: u32,
    /// Switches they stand under.
    pub racks: u32,
}

impl Shape {
    /// As the artifact names its cluster files.
    pub fn name(self) -> String {
        format!("n{}g8", self.nodes)
    }
}

/// One trace of a figure.
#[derive(Clone, Copy, Debug)]
pub struct Panel {
    /// What the trace is called.
    pub name: &'static str,
    /// Its file.
    pub file: &'static str,
    /// Where the file is published.
    pub origin: &'static str,
    /// What it runs on.
    pub cluster: Shape,
    /// Time between rounds.
    pub slot: Span,
    /// What the paper says.
    pub published: Published,
    /// Whether it is small enough for a quick look.
    pub is_quick: bool,
}

/// What can be reproduced from traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Figure 8(b): eleven traces.
    EightB,
    /// The traces on which the order of the schedulers is checked.
    Order,
}

impl Figure {
    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Figure::EightB => "ElasticFlow, Figure 8(b): deadlines met by five schedulers on eleven traces",
            Figure::Order => "ElasticFlow against its baselines on six traces",
        }
    }

    /// Its traces.
    pub fn panels(self) -> Vec<Panel> {
        match self {
            Figure::EightB => (1..=10).map(itp).chain([philly()]).collect(),
            Figure::Order => vec![testbed(), generated(), itp(10), philly(), itp(1), itp(6)],
        }
    }

    /// What of it cannot be had again, and why.
    pub fn caveats(self) -> &'static [&'static str] {
        &published::CAVEATS
    }
}

/// Three traces on clusters so small that jobs are declined which alone would have made it, for the comparison of the
/// greedy admission with a model. Two of them decline none of these on the figures' clusters.
pub(super) fn scarce() -> Vec<Panel> {
    let on_four = |panel: Panel| Panel { cluster: FOUR, ..panel };
    vec![testbed(), on_four(itp(10)), on_four(philly())]
}

const ITP: &str = "github.com/microsoft/elasticflow-traces (data/*.tar.gz)";
const ARTIFACT: &str = "github.com/gudiandian/ElasticFlow-artifact (ElasticFlow/traces_for_ElasticFlow)";
const MINUTE: Span = Span::from_secs(60);
const FOUR_MINUTES: Span = Span::from_secs(240);

const SMALL: Shape = Shape { nodes: 32, racks: 1 };
const MIDDLE: Shape = Shape { nodes: 64, racks: 2 };
const LARGE: Shape = Shape { nodes: 128, racks: 1 };
const FOUR: Shape = Shape { nodes: 4, racks: 1 };
const TESTBED: Shape = Shape { nodes: 16, racks: 1 };

const ITP_NAMES: [(&str, &str); 10] = [
    ("cluster01", "cluster01.csv"),
    ("cluster02", "cluster02.csv"),
    ("cluster03", "cluster03.csv"),
    ("cluster04", "cluster04.csv"),
    ("cluster05", "cluster05.csv"),
    ("cluster06", "cluster06.csv"),
    ("cluster07", "cluster07.csv"),
    ("cluster08", "cluster08.csv"),
    ("cluster09", "cluster09.csv"),
    ("cluster10", "cluster10.csv"),
];

/// One of Microsoft's ten clusters, counted from 1, on as many servers as the artifact's newest script gives it.
fn itp(number: usize) -> Panel {
    let (name, file) = ITP_NAMES[number - 1];
    let cluster = match number {
        10 => SMALL,
        4 | 7 | 8 | 9 => LARGE,
        _ => MIDDLE,
    };
    let is_quick = matches!(number, 1 | 10);
    Panel { name, file, origin: ITP, cluster, slot: MINUTE, published: EIGHT_B[number - 1], is_quick }
}

fn philly() -> Panel {
    let (name, file) = ("philly", "philly_103959.csv");
    Panel {
        name,
        file,
        origin: ARTIFACT,
        cluster: SMALL,
        slot: MINUTE,
        published: EIGHT_B[10],
        is_quick: true,
    }
}

fn testbed() -> Panel {
    let (name, file) = ("195job", "195job.csv");
    Panel { name, file, origin: ITP, cluster: TESTBED, slot: FOUR_MINUTES, published: SIX_B, is_quick: true }
}

fn generated() -> Panel {
    let (name, file) = ("fig10", "100jobs_1500lam.csv");
    let origin = "github.com/gudiandian/ElasticFlow-artifact (what its trace generator writes by default)";
    Panel { name, file, origin, cluster: TESTBED, slot: FOUR_MINUTES, published: TEN, is_quick: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figure_8b_has_eleven_traces_on_three_sizes_of_cluster() {
        let panels = Figure::EightB.panels();
        let on = |nodes: u32| panels.iter().filter(|panel| panel.cluster.nodes == nodes).count();
        assert_eq!((panels.len(), on(32), on(64), on(128)), (11, 2, 5, 4));
        assert_eq!(panels[9].published.ratios, [0.981, 0.769, 0.354, 0.473, 0.431]);
    }

    #[test]
    fn the_published_improvement_over_the_baselines_is_in_the_numbers() {
        // The paper's "1.46-7.65x" is Figure 6(b): Tiresias and EDF.
        let [elasticflow, edf, _, tiresias, _] = SIX_B.ratios;
        assert_eq!(format!("{:.2} {:.2}", elasticflow / tiresias, elasticflow / edf), "1.46 7.65");
    }
}
