//! Floor 6: one program, run at every stage. [`observe`] runs each state of a compilation and compares it with the one
//! before; [`locate`] finds where two runs part; [`native`] runs executables; [`mutants`] are faults put in on purpose,
//! which the judges must catch, and [`spoil`] shows what each of a stage would do; [`bisect`] finds the pass and the change that made a difference.

pub mod bisect;
pub mod locate;
pub mod machine_mutants;
pub mod mutants;
pub mod native;
pub mod observe;
pub mod shown;
pub mod spoil;

pub use observe::{Report, StageRun, Verifier};
pub use shown::{Ended, Shown};
