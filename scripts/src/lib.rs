//! rota-scripts
