//! What a run has shown, in the form in which runs of all kinds are compared: interpreters know the error and its span, an
//! executable leaves text and an exit status.
//!
//! ```text
//! Trap::DivisionByZero at bytes 40..41     →     Error("division by zero at 3:14")
//! status 101, "error: division by zero\n --> p.atl:3:14\n"     →     the same
//! ```
//!
//! **in**: an outcome, or what a process left. **out**: a [`Shown`]. Cost: linear in the output.

use crate::execution::{End, Limit, Outcome};
use crate::support::span::Positions;
use std::fmt;

/// What a run has shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shown {
    /// Standard output.
    pub output: Vec<u8>,
    /// How it ended.
    pub end: Ended,
}

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ended {
    /// With exit status 0 and no error.
    Normal,
    /// With a run-time error, as `message at line:column`; or in a way that no program should end.
    Error(String),
    /// Cut off by this limit: what was shown is a beginning.
    Cut(&'static str),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Normal => f.write_str("exit status 0"),
            Ended::Error(message) => f.write_str(message),
            Ended::Cut(limit) => write!(f, "cut off ({limit})"),
        }
    }
}

impl Shown {
    /// What the run of an interpreter has shown.
    pub fn of_outcome(outcome: Outcome, positions: &Positions) -> Shown {
        let end = match outcome.end {
            End::Normal => Ended::Normal,
            End::Trap(trap, span) => match positions.position(span) {
                Some(position) => Ended::Error(format!("{trap} at {position}")),
                None => Ended::Error(trap.to_string()),
            },
            End::Limit(Limit::Steps) => Ended::Cut("steps"),
            End::Limit(Limit::Output) => Ended::Cut("output"),
            End::Limit(Limit::Depth) => Ended::Cut("depth of calls"),
            End::Limit(Limit::Memory) => Ended::Cut("memory"),
        };
        Shown { output: outcome.output, end }
    }

    /// What a process has shown that ended by itself: its standard output, its standard error and its status, negative for a
    /// signal. The stack of a process is not that of an interpreter, so its overflow is a limit.
    pub fn of_process(output: Vec<u8>, errors: &[u8], status: i32) -> Shown {
        let errors = String::from_utf8_lossy(errors);
        let mut lines = errors.lines();
        let message = lines.next().and_then(|line| line.strip_prefix("error: "));
        let place = lines.next().and_then(|line| line.strip_prefix(" --> "));
        let more = lines.next();
        let end = match (status, message, place, more) {
            (0, None, None, None) if errors.is_empty() => Ended::Normal,
            (101, Some("stack overflow"), None, None) => Ended::Cut("stack"),
            (101, Some(message), None, None) => Ended::Error(message.to_string()),
            (101, Some(message), Some(place), None) => {
                // FILE:LINE:COLUMN; a file's name may hold colons too.
                let mut parts = place.rsplitn(3, ':');
                match (parts.next(), parts.next()) {
                    (Some(column), Some(line)) => Ended::Error(format!("{message} at {line}:{column}")),
                    (Some(_) | None, Some(_) | None) => Ended::Error(format!("{message} at {place}")),
                }
            }
            _ if status < 0 => Ended::Error(format!("ended by signal {}; {errors:?}", -status)),
            _ => Ended::Error(format!("exit status {status}; {errors:?}")),
        };
        Shown { output, end }
    }

    /// Can both be runs of one program on one input? Where a limit cut one off, its output must be a beginning of the
    /// other's.
    pub fn agrees(&self, other: &Shown) -> bool {
        match (&self.end, &other.end) {
            (Ended::Cut(_), Ended::Cut(_)) => {
                self.output.starts_with(&other.output) || other.output.starts_with(&self.output)
            }
            (Ended::Cut(_), Ended::Normal | Ended::Error(_)) => other.output.starts_with(&self.output),
            (Ended::Normal | Ended::Error(_), Ended::Cut(_)) => self.output.starts_with(&other.output),
            (Ended::Normal | Ended::Error(_), Ended::Normal | Ended::Error(_)) => self == other,
        }
    }

    /// Did a limit cut it off?
    pub fn is_cut(&self) -> bool {
        matches!(self.end, Ended::Cut(_))
    }

    /// The number of the first byte of output that differs, if one does.
    pub fn first_difference(&self, other: &Shown) -> Option<usize> {
        let same = self.output.iter().zip(&other.output).take_while(|(a, b)| a == b).count();
        (self.output != other.output).then_some(same)
    }
}

/// What one run would show where another shows something else: the line of output that holds the byte, or the end.
pub fn excerpt(shown: &Shown, at: usize) -> String {
    if at >= shown.output.len() {
        return format!("ends: {}", shown.end);
    }
    let start = shown.output[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let end = shown.output[at..].iter().position(|byte| *byte == b'\n').map_or(shown.output.len(), |end| at + end);
    // A line may be as long as the program likes.
    let (start, end) = (start.max(at.saturating_sub(60)), end.min(at + 60));
    format!("prints `{}`", String::from_utf8_lossy(&shown.output[start..end]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::semantics::Trap;
    use crate::support::span::{Source, Span};

    #[test]
    fn interpreters_and_processes_say_the_same() {
        let positions = Positions::of_source(&Source::new("a:b.atl", "let a = 1;\nprint(a / 0);"));
        let outcome = Outcome { output: b"1\n".to_vec(), end: End::Trap(Trap::DivisionByZero, Span::new(19, 20)) };
        let interpreted = Shown::of_outcome(outcome, &positions);
        let errors = b"error: division by zero\n --> a:b.atl:2:9\n";
        assert_eq!(interpreted, Shown::of_process(b"1\n".to_vec(), errors, 101));
        let stopped = Shown::of_outcome(Outcome { output: b"".to_vec(), end: End::Limit(Limit::Steps) }, &positions);
        assert!(stopped.agrees(&interpreted) && interpreted.agrees(&stopped));
        assert!(!interpreted.agrees(&Shown::of_process(b"1\n".to_vec(), b"", 0)));
        assert!(!interpreted.agrees(&Shown::of_process(b"1\n".to_vec(), errors, -11)));
    }

    #[test]
    fn excerpts_are_lines() {
        let shown = Shown { output: b"1\n2 2\n".to_vec(), end: Ended::Normal };
        let other = Shown { output: b"1\n2 1\n".to_vec(), end: Ended::Normal };
        let at = shown.first_difference(&other).expect("they differ");
        assert_eq!(
            (excerpt(&shown, at), excerpt(&other, at)),
            ("prints `2 2`".to_string(), "prints `2 1`".to_string())
        );
        assert_eq!(excerpt(&shown, 6), "ends: exit status 0");
    }
}
