//! The published points: a table `order,source,allocation,jct_h,cdf` of GPEmu's times and the paper's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Column, Curve};

/// Jobs of Synergy's deployment trace, behind the paper's points.
const JOBS_OF_THE_PAPER: usize = 100;

/// All published curves, by order, source and allocation.
#[derive(Clone, Debug, Default)]
pub struct Published {
    curves: BTreeMap<(String, String, String), Curve>,
}

/// Points that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PointsError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Io {
        /// File with the points.
        path: PathBuf,
        /// What the operating system answered.
        source: std::io::Error,
    },
    /// It is not a table of points.
    #[error("{}:{line}: {problem}", path.display())]
    Row {
        /// Which file.
        path: PathBuf,
        /// Where in it.
        line: u64,
        /// What is wrong.
        problem: String,
    },
}

#[derive(serde::Deserialize)]
struct Row {
    order: String,
    source: String,
    allocation: String,
    jct_h: f64,
    cdf: f64,
}

impl Published {
    /// Reads the table.
    pub fn read(path: &Path) -> Result<Self, PointsError> {
        let io = |source| PointsError::Io { path: path.to_owned(), source };
        Self::parse(path, &std::fs::read_to_string(path).map_err(io)?)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, PointsError> {
        let wrong = |line, problem: String| PointsError::Row { path: path.to_owned(), line, problem };
        let mut points: BTreeMap<(String, String, String), Vec<(f64, f64)>> = BTreeMap::new();
        for (line, row) in (2..).zip(csv::Reader::from_reader(text.as_bytes()).deserialize::<Row>()) {
            let row = row.map_err(|error| wrong(line, error.to_string()))?;
            if !(row.jct_h.is_finite() && row.jct_h >= 0.0 && (0.0..=1.0).contains(&row.cdf)) {
                let got =
                    format!("got {} h and {}, expected hours and a share from 0 to 1", row.jct_h, row.cdf);
                return Err(wrong(line, got));
            }
            points.entry((row.order, row.source, row.allocation)).or_default().push((row.jct_h, row.cdf));
        }
        if points.is_empty() {
            return Err(wrong(
                1,
                "expected a table order,source,allocation,jct_h,cdf with points".to_owned(),
            ));
        }
        let curve = |(key, points): ((String, String, String), Vec<(f64, f64)>)| {
            let n_jobs = if key.1 == "paper" { JOBS_OF_THE_PAPER } else { points.len() };
            Some((key, Curve::through(points, n_jobs)?))
        };
        Ok(Published { curves: points.into_iter().filter_map(curve).collect() })
    }

    /// A published curve.
    pub fn curve(&self, column: Column, order: &str, allocation: &str) -> Option<&Curve> {
        let source = match column {
            Column::Gpemu => "gpemu",
            Column::Paper => "paper",
            Column::Deployed | Column::Simulated => return None,
        };
        self.curves.get(&(order.to_owned(), source.to_owned(), allocation.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "order,source,allocation,jct_h,cdf\nlas,gpemu,tune,1.5,0.5\nlas,gpemu,tune,2.5,1.0\n";

    #[test]
    fn curves_are_found_by_order_source_and_allocation() {
        let published = Published::parse(Path::new("p.csv"), TABLE).expect("sound");
        let curve = published.curve(Column::Gpemu, "las", "tune").expect("there");
        assert_eq!((curve.n_jobs(), curve.mean_h()), (2, 2.0));
        assert_eq!(published.curve(Column::Paper, "las", "tune"), None);
        assert_eq!(published.curve(Column::Deployed, "las", "tune"), None);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let empty = Published::parse(Path::new("p.csv"), "a,b\n").expect_err("no points").to_string();
        assert_eq!(empty, "p.csv:1: expected a table order,source,allocation,jct_h,cdf with points");
        for bad in ["las,gpemu,tune,soon,1\n", "las,gpemu,tune,1,1.5\n", "las,gpemu\n"] {
            let error =
                Published::parse(Path::new("p.csv"), &format!("{TABLE}{bad}")).expect_err(bad).to_string();
            assert!(error.starts_with("p.csv:4: "), "{error}");
        }
        assert!(
            Published::read(Path::new("/nowhere/p.csv"))
                .expect_err("none")
                .to_string()
                .contains("cannot be read")
        );
    }
}
