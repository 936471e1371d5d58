//! The profiler: its closed loop without processes over every shipped profile, and with real ones; commands that fail in
//! every way a command can.

mod closed_loop;
mod commands;
mod data_loading;
mod overhead;
mod pace;
mod pure;
mod sets;
mod synergy_script;
