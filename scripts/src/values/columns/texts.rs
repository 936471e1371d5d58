//! Columns of texts: one for each job, such as the name of its tenant. They are compared with a text, and group jobs.

use std::sync::Arc;

use rhai::ImmutableString;
use rota_core::ids::TenantId;
use rota_core::table::Field;

use super::arithmetic::map;
use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};
use crate::values::operators::truth;
use crate::values::{Column, JobValue, Jobs};

/// One text for each job of a set.
#[derive(Clone, Debug)]
pub(crate) struct Texts {
    /// The number of each job's text.
    numbers: Column,
    /// The texts by number.
    texts: Arc<Vec<String>>,
}

impl Texts {
    /// The names of the jobs' tenants.
    fn of_tenants(jobs: &Jobs) -> Outcome<Texts> {
        let numbers = Column::field(jobs, Field::Tenant)?;
        jobs.session.meter().charge(jobs.len())?;
        let most = numbers.values().iter().copied().fold(-1.0, f64::max);
        // Numbers are of tenants, so there are no more of them than jobs ever were.
        let n_tenants = (most as i64 + 1).max(0) as u32;
        let texts = (0..n_tenants).map(|tenant| jobs.session.tenant_name(TenantId(tenant))).collect();
        Ok(Texts { numbers, texts: Arc::new(texts) })
    }

    /// A number for each job that is the same where the text is.
    pub(crate) fn numbers(&self) -> &Column {
        &self.numbers
    }

    /// The text of a number in [`Texts::numbers`].
    pub(crate) fn text(&self, number: f64) -> &str {
        self.texts.get(number as usize).map_or("", String::as_str)
    }

    fn of(&self, job: &JobValue) -> Outcome<ImmutableString> {
        match self.numbers.jobs.position_of(job.row()) {
            Some(position) => Ok(self.text(self.numbers.values()[position]).into()),
            None => fail(format!("job {} is not in the set of this column", job.id())),
        }
    }

    fn is(self, text: &str, wanted: bool) -> Outcome<Column> {
        let number =
            self.texts.iter().position(|known| known == text).map_or(f64::NAN, |number| number as f64);
        map(self.numbers, |of_job| truth((of_job == number) == wanted))
    }
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Texts";
    registrar.class::<Texts>(OWNER, "One text for each job of a set.");
    registrar
        .field(OWNER, "len: int", "How many texts.")
        .register_get("len", |texts: &mut Texts| texts.numbers.jobs.len() as i64);
    registrar
        .method(OWNER, "of(job: Job) -> String", "The text of one job.")
        .register_fn("of", |texts: Texts, job: JobValue| texts.of(&job));
    let engine = registrar.method(
        OWNER,
        "a == text, a != text -> Column",
        "1 where it holds and 0 where it does not: `jobs.filter(jobs.tenant_name == \"ann\")`.",
    );
    engine.register_fn("==", |texts: Texts, text: ImmutableString| texts.is(&text, true));
    engine.register_fn("==", |text: ImmutableString, texts: Texts| texts.is(&text, true));
    engine.register_fn("!=", |texts: Texts, text: ImmutableString| texts.is(&text, false));
    engine.register_fn("!=", |text: ImmutableString, texts: Texts| texts.is(&text, false));
    registrar.unknown_field::<Texts>(OWNER);
    registrar
        .field("Jobs", "tenant_name: Texts", "The name of each job's tenant.")
        .register_get("tenant_name", |jobs: &mut Jobs| Texts::of_tenants(jobs));
}
