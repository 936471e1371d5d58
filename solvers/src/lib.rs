//! rota-solvers
