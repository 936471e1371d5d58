//! Functions of texts in place of Rhai's own that look at the size of what they make only when it is made.

use std::sync::Arc;

use rhai::{Engine, ImmutableString};

use crate::language::session::{Outcome, Shared, fail};

pub(crate) fn register(engine: &mut Engine, shared: &Arc<Shared>) {
    let host = Arc::clone(shared);
    engine.register_fn(
        "replace",
        move |text: &mut ImmutableString, what: ImmutableString, with: ImmutableString| {
            replace(&host, text, &what, &with)
        },
    );
    let host = Arc::clone(shared);
    engine.register_fn("replace", move |text: &mut ImmutableString, what: char, with: ImmutableString| {
        replace(&host, text, what.encode_utf8(&mut [0; 4]), &with)
    });
    let host = Arc::clone(shared);
    engine.register_fn("replace", move |text: &mut ImmutableString, what: ImmutableString, with: char| {
        replace(&host, text, &what, with.encode_utf8(&mut [0; 4]))
    });
}

/// Puts one text in the place of another wherever it stands, if the result is no larger than a text may be.
fn replace(shared: &Shared, text: &mut ImmutableString, what: &str, with: &str) -> Outcome<()> {
    let (old, most) = (text.len(), shared.meter.limits().string_bytes);
    shared.meter.charge(old)?;
    let n_places = text.matches(what).count();
    let new = n_places.saturating_mul(with.len()).saturating_add(old).saturating_sub(n_places * what.len());
    if new > most {
        return fail(format!("replace: the text would have {new} bytes, at most {most} are allowed"));
    }
    *text = text.replace(what, with).into();
    Ok(())
}
