//! The words of a walk: what each job is offered, what is tried next, which job comes first, which gives back.

use std::sync::Arc;

use crate::reclaim::Reclaim;
use crate::resources::Host;
use crate::room::Room;

/// Host resources a job asks for with each GPU.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// What its profile says is best.
    Best,
    /// The proportional share.
    FairShare,
    /// By row.
    PerGpu(Vec<Host>),
}

/// GPUs a job gets.
#[derive(Clone, Debug, PartialEq)]
pub enum Counts {
    /// What it asked for.
    Asked,
    /// By row; 0 leaves the job out. How elastic policies say their levels.
    PerRow(Vec<u32>),
}

/// What to try next with a job that does not fit.
pub enum Answer<'a> {
    /// Ask for no more than the proportional share, component by component.
    FairShare,
    /// Take back what neighbours hold beyond their proportional share.
    Reclaim(Reclaim),
    /// Ask for what this says for the row, given the room; `None` gives up.
    Ask(&'a mut dyn FnMut(usize, &Room) -> Option<Host>),
}

/// What a job that does not fit means for those behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Misfit {
    /// Later jobs are tried.
    #[default]
    Skip,
    /// Later jobs wait too.
    Stop,
}

/// In which order the walk looks at the jobs it has chosen.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Sequence {
    /// As in the queue.
    #[default]
    Queue,
    /// Large gangs and demands first: they pack better (OSDI'22, §4.2).
    LargestFirst,
    /// These rows. Where jobs are served, those that are missing come last, as in the queue; where jobs are raised,
    /// those that are missing are left as they are.
    Rows(Arc<Vec<u32>>),
}

/// Which neighbours give back what they hold beyond their share.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Givers {
    /// First those on fewest nodes, then those with most CPUs for each GPU, then with most memory.
    #[default]
    Richest,
    /// These rows, in this order; the others give nothing.
    Rows(Arc<Vec<u32>>),
}

/// How a walk goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Walk {
    /// Host resources asked for at first.
    pub demand: Demand,
    /// GPUs.
    pub counts: Counts,
    /// What happens after a job that does not fit.
    pub misfit: Misfit,
    /// Walk only the jobs whose GPUs fit together, chosen in order; else every job is tried.
    pub only_selected: bool,
    /// In which order those walked are served: the first has the first choice.
    pub packs: Sequence,
    /// Jobs that run and are selected again stay on their GPUs.
    pub keep_places: bool,
    /// Jobs that stay are served before all others, so that new jobs take what is left instead of their CPUs.
    pub stayers_first: bool,
    /// Which jobs give back first where a neighbour reclaims.
    pub givers: Givers,
    /// Jobs below their demand are raised, moved or exchanged where that gives it to them, in this order.
    pub rearranges: Option<Sequence>,
    /// What is left on a node is given to its jobs that are below their demand, in this order.
    pub tops_up: Option<Sequence>,
    /// New placements use only the nodes with lower numbers; `None` uses all.
    pub first_nodes: Option<u32>,
}

impl Default for Walk {
    fn default() -> Self {
        Walk {
            demand: Demand::Best,
            counts: Counts::Asked,
            misfit: Misfit::Skip,
            only_selected: false,
            packs: Sequence::Queue,
            keep_places: true,
            stayers_first: false,
            givers: Givers::Richest,
            rearranges: None,
            tops_up: None,
            first_nodes: None,
        }
    }
}
