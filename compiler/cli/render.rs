//! Diagnostics as text.

use crate::support::diagnostics::Diagnostic;
use crate::support::span::Source;

/// Renders the diagnostics.
pub fn render(diagnostics: &[Diagnostic], source: &Source, _colour: bool) -> String {
    let line = |d: &Diagnostic| {
        format!("error[{}]: {}\n --> {}:{}\n", d.code, d.message, source.name, source.position(d.primary.span.start))
    };
    diagnostics.iter().map(line).collect()
}
