//! Floor 1: pure algorithms over ids and closures. Nothing here knows the IR, so that each can be tested on graphs of
//! numbers and used for the IR and machine code alike.

pub mod dominators;
pub mod frontiers;
pub mod nearest;
pub mod parallel_copy;
pub mod postorder;
pub mod random;
