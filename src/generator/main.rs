//! The command line of the generator; see the crate's documentation.

use std::path::Path;

use anyhow::{Context, Result, bail};
use generator::{Specs, generate};

fn main() -> Result<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let check = arguments.first().is_some_and(|a| a == "--check");
    if check {
        arguments.remove(0);
    }
    let [specs, target] = &arguments[..] else {
        bail!("usage: generator [--check] FOLDER_OF_SPECIFICATIONS TARGET_FOLDER");
    };
    let specs = Specs::read(Path::new(specs)).context("reading the specifications")?;
    let output = generate(&specs)?;
    if check { output.compare(Path::new(target)) } else { output.write(Path::new(target)) }
}
