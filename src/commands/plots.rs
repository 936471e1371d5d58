//! How large plots are drawn for papers: options of every command that writes them.

use anyhow::{Result, bail};
use clap::Args;
use rota_lab::report::{PlotOptions, PlotSize};

/// Size and type of plots.
#[derive(Args, Clone, Debug)]
pub(crate) struct PlotArgs {
    /// Size of plots in files: a column or the whole width of a paper in two columns, or inches, as in 3.33x2.2
    #[arg(long, value_name = "column|page|WxH", default_value = "column", help_heading = "Output")]
    pub size: PlotSize,
    /// Size of the type in plots, in points
    #[arg(long, value_name = "POINTS", default_value_t = 8.0, help_heading = "Output")]
    pub font_size: f64,
}

impl PlotArgs {
    /// As the drawing takes them.
    pub(crate) fn options(&self) -> Result<PlotOptions> {
        if !(3.0..=40.0).contains(&self.font_size) {
            bail!("--font-size {}: points from 3 to 40 are expected", self.font_size);
        }
        Ok(PlotOptions { size: self.size, font_pt: self.font_size })
    }
}
