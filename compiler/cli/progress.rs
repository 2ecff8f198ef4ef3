//! The progress bar of a campaign: programs, rate, findings. Only on terminals; the only door to `indicatif`.

use crate::fuzz::campaign::Counts;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// A bar, or nothing where standard error is no terminal.
pub struct Progress(ProgressBar);

impl Progress {
    /// For so many seeds; `None` if there is no end.
    pub fn new(seeds: Option<u64>) -> Progress {
        let target = match std::io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(seeds, target);
        let template = match seeds {
            Some(_) => "{bar:30} {pos}/{len} seeds, {per_sec}, {eta} left, {msg}",
            None => "{spinner} {pos} seeds, {per_sec}, {elapsed}, {msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress(bar)
    }

    /// Shows how far it has come.
    pub fn set(&self, counts: &Counts) {
        self.0.set_position(counts.seeds);
        self.0.set_message(format!("{} programs, {} findings", counts.programs, counts.findings));
    }

    /// Shows lines above the bar.
    pub fn suspend(&self, show: impl FnOnce()) {
        self.0.suspend(show);
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}
