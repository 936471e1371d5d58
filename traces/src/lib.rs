//! rota-traces
