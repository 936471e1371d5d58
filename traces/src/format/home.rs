//! Where a trace is at home: the built-in cluster and profiles it runs with when the user names no others.

use super::{Format, detect};
use crate::error::InputError;
use crate::profile::{self, ProfileSet};
use crate::rows::{BadRows, Rows};
use crate::source::Source;

/// Names of a built-in cluster and of a built-in profile set that go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// Name of a built-in cluster.
    pub cluster: &'static str,
    /// Name of a built-in profile set.
    pub profiles: &'static str,
}

impl Home {
    /// Synergy's servers and models, where nothing says otherwise.
    pub const DEFAULT: Home = Home { cluster: "default", profiles: "synergy" };
    const A100: Home = Home { cluster: "a100", profiles: "elasticflow-a100" };
    const T4: Home = Home { cluster: "t4", profiles: "elasticflow-t4" };
    const POLLUX: Home = Home { cluster: "t4", profiles: "pollux-t4" };
}

/// The home of a trace. ElasticFlow's tables name models that were measured on A100 GPUs or on T4s: the set that knows
/// every model and batch of the file is taken.
pub fn home(source: &Source, format: Option<Format>) -> Result<Home, InputError> {
    match format.map_or_else(|| detect(source), Ok)? {
        Format::Itp => Ok(Home::A100),
        Format::Sia => Ok(Home::POLLUX),
        Format::Elasticflow if knows_all(&profile::load(Home::T4.profiles)?, source)? => Ok(Home::T4),
        Format::Elasticflow => Ok(Home::A100),
        _ => Ok(Home::DEFAULT),
    }
}

fn knows_all(profiles: &ProfileSet, source: &Source) -> Result<bool, InputError> {
    let rows = Rows::with_header(source)?;
    let (model, batch) = (rows.need(&["model_name"])?, rows.need(&["batch_size"])?);
    let mut is_known = true;
    rows.each(BadRows::Skip, |row| {
        let levels = |batch: u32| profiles.levels(row.text(model), batch);
        is_known &= row.text(batch).parse().is_ok_and(|batch| !levels(batch).is_empty());
        Ok(())
    })?;
    Ok(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home_of(text: &str) -> Home {
        home(&Source::new("t.csv", text), None).expect("a known format")
    }

    #[test]
    fn a_trace_runs_on_what_its_models_were_measured_on() {
        let head = "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration\n";
        assert_eq!(home_of(&format!("{head}a,5,100,bert,900,64,2,50\n")), Home::A100);
        assert_eq!(
            home_of(&format!("{head}a,5,100,bert,900,384,2,50\nb,5,9,ncf,900,32768,1,50\n")),
            Home::T4
        );
        assert_eq!(
            home_of(&format!("{head}a,5,100,bert,900,384,2,50\nb,5,9,gpt2,900,128,1,50\n")),
            Home::A100
        );
        assert_eq!(home_of("job_id,submission_time,duration,num_gpu\na,5,6000,1\n"), Home::A100);
        assert_eq!(home_of("name,time,application,num_replicas,batch_size\n"), Home::POLLUX);
        assert_eq!(home_of("job_id,arrival_s,gpus,iterations\na,0,1,10\n"), Home::DEFAULT);
    }
}
