//! Ottla's command line.
fn main() {}
