//! Floor 6: recorded listings → one self-contained HTML page.

pub mod layout;
pub mod page;
pub mod record;
