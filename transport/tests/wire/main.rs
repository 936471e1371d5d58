//! Messages as they travel: their frozen bytes, and decoders under fire.

mod decoders;
mod golden;
mod samples;
