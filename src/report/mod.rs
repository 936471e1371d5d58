//! Plots and pages.
