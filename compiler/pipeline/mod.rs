//! Floor 5: the pipeline. [`stages`] is the list of all stages, [`run`] the one loop over it, [`observe`] what hangs on
//! that loop: dumping, timing, verifying, recording. [`state`] is what a program is between two stages, [`facts`] prints
//! what the analyses know.

pub mod facts;
pub mod observe;
pub mod options;
pub mod run;
pub mod stages;
pub mod state;
mod steps;

pub use options::Options;
pub use run::{Compiled, Failure, compile};
pub use stages::Stage;
pub use state::{Language, State};
