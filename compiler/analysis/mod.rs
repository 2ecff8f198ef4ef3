//! Floor 3: facts about IR, computed when asked for and never stored in it.

pub mod cfg;
pub mod dominators;
pub mod frontiers;
pub mod live_points;
pub mod liveness;
pub mod loops;
