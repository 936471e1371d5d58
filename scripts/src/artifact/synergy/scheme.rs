//! The original's scheduler names: an order, and flags for how much and where.

use std::fmt;

use super::error::SchemeError;

/// A scheduler of the original: `FIFO+tune+place`, or in Rota's words `fifo+tune+consolidate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheme {
    /// The order in which jobs are served.
    pub order: OrderName,
    /// How many CPUs and how much memory each job gets.
    pub allocation: Allocation,
    /// How GPUs are found.
    pub placement: Placement,
}

/// The order in which jobs are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderName {
    /// First come, first served.
    Fifo,
    /// Shortest remaining time.
    Srtf,
    /// Least attained service.
    Las,
    /// Finish-time fairness, smallest ratio first.
    Ftf,
    /// Dominant share of the demand.
    Drf,
    /// Remaining time times demand.
    Tetris,
}

/// How much each job gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// The proportional share, the original's `fair`.
    Proportional,
    /// The ideal demand or nothing, the original's name without a flag.
    Greedy,
    /// The ideal demand, else the proportional share at the expense of neighbours.
    Tune,
    /// The optimum of a model; not walked.
    Opt,
}

/// Where jobs are put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The first GPUs with room.
    FirstFit,
    /// The fullest node that holds the gang, the original's `place`.
    Consolidate,
}

impl Scheme {
    /// Reads a name in the original's words or in Rota's; `bare` is what a name without an allocation means
    /// ([`Allocation::Greedy`] in the original).
    pub fn parse(name: &str, bare: Allocation) -> Result<Self, SchemeError> {
        let wrong = |part: &str, why| SchemeError { name: name.to_owned(), part: part.to_owned(), why };
        let lower = name.to_ascii_lowercase();
        let mut parts = lower.split('+');
        let first = parts.next().unwrap_or("");
        let known = OrderName::ALL.iter().find(|(_, word)| *word == first);
        let (order, _) = *known.ok_or_else(|| wrong(first, "not an order of the original"))?;
        let (mut allocation, mut placement) = (None, None);
        for part in parts {
            let is_second = match (allocation_of(part), placement_of(part)) {
                (Some(found), _) => allocation.replace(found).is_some(),
                (_, Some(found)) => placement.replace(found).is_some(),
                _ => return Err(wrong(part, "not an allocation or placement of the original")),
            };
            if is_second {
                return Err(wrong(part, "a second answer to a question already answered"));
            }
        }
        Ok(Scheme {
            order,
            allocation: allocation.unwrap_or(bare),
            placement: placement.unwrap_or(Placement::FirstFit),
        })
    }
}

impl OrderName {
    /// Every order with its name.
    pub const ALL: [(OrderName, &'static str); 6] = [
        (OrderName::Fifo, "fifo"),
        (OrderName::Srtf, "srtf"),
        (OrderName::Las, "las"),
        (OrderName::Ftf, "ftf"),
        (OrderName::Drf, "drf"),
        (OrderName::Tetris, "tetris"),
    ];

    /// The word in a scheme's name.
    pub fn name(self) -> &'static str {
        OrderName::ALL.iter().find(|(order, _)| *order == self).map_or("", |(_, name)| name)
    }
}

fn allocation_of(part: &str) -> Option<Allocation> {
    Some(match part {
        "fair" | "proportional" => Allocation::Proportional,
        "greedy" => Allocation::Greedy,
        "tune" => Allocation::Tune,
        "opt" => Allocation::Opt,
        _ => return None,
    })
}

fn placement_of(part: &str) -> Option<Placement> {
    Some(match part {
        "first-fit" => Placement::FirstFit,
        "place" | "consolidate" => Placement::Consolidate,
        _ => return None,
    })
}

impl fmt::Display for Scheme {
    /// In Rota's words, complete.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let allocation = match self.allocation {
            Allocation::Proportional => "proportional",
            Allocation::Greedy => "greedy",
            Allocation::Tune => "tune",
            Allocation::Opt => "opt",
        };
        let placement = match self.placement {
            Placement::FirstFit => "first-fit",
            Placement::Consolidate => "consolidate",
        };
        write!(f, "{}+{allocation}+{placement}", self.order.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_both_vocabularies() {
        for (name, expected) in [
            ("FIFO", "fifo+greedy+first-fit"),
            ("SRTF+fair+place", "srtf+proportional+consolidate"),
            ("LAS+tune", "las+tune+first-fit"),
            ("tetris+consolidate+opt", "tetris+opt+consolidate"),
        ] {
            let scheme = Scheme::parse(name, Allocation::Greedy).expect(name);
            assert_eq!(scheme.to_string(), expected);
            assert_eq!(Scheme::parse(expected, Allocation::Tune), Ok(scheme));
        }
    }

    #[test]
    fn what_the_original_does_not_have_is_named() {
        let message = |name| Scheme::parse(name, Allocation::Greedy).expect_err(name).to_string();
        assert_eq!(message("SRSF+tune"), "policy `SRSF+tune`: `srsf` is not an order of the original");
        assert_eq!(
            message("fifo+turbo"),
            "policy `fifo+turbo`: `turbo` is not an allocation or placement of the original"
        );
        assert_eq!(
            message("fifo+fair+tune"),
            "policy `fifo+fair+tune`: `tune` is a second answer to a question already answered"
        );
        assert!(Scheme::parse("", Allocation::Greedy).is_err());
    }
}
