//! The profiler: measures how fast a training command is with how many CPUs, how much memory, how many GPUs and which
//! batch, with few runs, and writes the result as a profile.
//!
//! ```text
//! Grid ─▶ Sweep::next ─▶ Point ─▶ measure (rota-agent) ─▶ Run ─┐
//!            ▲                                                  │ Findings (runs.jsonl)
//!            └──────────────────────────────────────────────────┘
//! Findings ─▶ Fit ─▶ Demand (the knee) ─▶ profile.toml, report.html
//! ```
//!
//! `sweep`, `fit`, `knee`, `samples` and `cache_model` are pure: the closed loop over every shipped profile is tested
//! without a process. `measure` runs one point through the agent's launchers; `invocation` builds the command line of a point,
//! `perf_file` what Synergy's own scripts leave.
//! Synergy's "optimistic profiling" (OSDI'22, §3.1) is the model: CPUs are swept, memory is computed.

pub mod cache_model;
pub mod findings;
pub mod fit;
pub mod grid;
pub mod invocation;
pub mod knee;
pub mod measure;
pub mod overhead;
pub mod page;
pub mod pattern;
pub mod perf_file;
pub mod rates;
pub mod samples;
pub mod sweep;
