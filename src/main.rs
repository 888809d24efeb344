//! Ottla's command line.
//!
//! `ottla` alone is a broker at 127.0.0.1:9092. The exit code is 0 where all went well, 1 where it did not, 2 for a
//! command line that is not one.

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use metadata::config::suggest;
use ottla::config::{self, Config, Sources};
use ottla::{health, serve};

// glibc gives large blocks at addresses where copying is ten times slower on some machines.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A broker for the clients of Apache Kafka
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: Told,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a node; the default
    Serve(Told),
    /// Print the configuration that counts, and where each value comes from
    Config(Told),
    /// Ask the node of this configuration whether it answers; the exit code says it
    Health(Told),
    /// Print the version
    Version,
    /// Print a script that completes commands in a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print config.toml, or README's table of APIs
    #[command(hide = true)]
    Reference {
        /// Which of the two
        #[arg(default_value = "config")]
        what: Reference,
    },
}

/// Texts of the project that are made of its tables.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Reference {
    Config,
    Apis,
}

/// What a node is told on the command line.
#[derive(Debug, Args)]
struct Told {
    /// config.toml, or Java properties where the name ends in .properties
    file: Option<PathBuf>,
    /// Set a configuration, instead of what files and environment say
    #[arg(long = "set", visible_alias = "override", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

fn main() -> ExitCode {
    // Without this a start is only slower.
    let _ = host::allow_huge_pages(false);
    let command_line = CommandLine::parse();
    if let Some(error) = command_line.serve.file.as_deref().and_then(no_command) {
        eprintln!("ottla: {error}");
        return ExitCode::from(2);
    }
    match command_line.command.unwrap_or(Command::Serve(command_line.serve)) {
        Command::Serve(told) => told.with_config(serve::serve),
        Command::Config(told) => told.with_config(|config| print(&table(&config))),
        Command::Health(told) => told.with_config(health),
        Command::Version => print(concat!("ottla ", env!("CARGO_PKG_VERSION"), "\n")),
        Command::Completions { shell } => completions(shell),
        Command::Reference { what: Reference::Config } => print(&config::reference()),
        Command::Reference { what: Reference::Apis } => print(&config::support()),
    }
}

impl Told {
    /// Goes on with the configuration that this and all else adds up to.
    fn with_config(self, go_on: impl FnOnce(Config) -> ExitCode) -> ExitCode {
        match Config::load(&Sources::of_process(self.file, self.set)) {
            Ok(config) => go_on(config),
            Err(error) => refuse(&error),
        }
    }
}

/// Why a word that stands where a command or a file may stand is neither; none if it may be a file.
fn no_command(word: &Path) -> Option<String> {
    let name = word.to_str().filter(|name| !name.contains(['.', '/']) && !word.exists())?;
    let command = CommandLine::command();
    let names: Vec<&str> =
        command.get_subcommands().filter(|each| !each.is_hide_set()).map(clap::Command::get_name).collect();
    if names.contains(&name) {
        return Some(format!("the command comes first: ottla {name} --set KEY=VALUE"));
    }
    let near = suggest(name, names.iter().copied());
    let meant = near.map_or_else(String::new, |near| format!(", did you mean {near}?"));
    Some(format!("{name} is neither a command nor a file{meant}\nCommands: {}", names.join(", ")))
}

fn health(config: Config) -> ExitCode {
    match health::check(&config) {
        Ok(address) => print(&format!("{address} answers\n")),
        Err(error) => refuse(&error),
    }
}

fn completions(shell: Shell) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), "ottla", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// A line for each key: name, value, origin.
fn table(config: &Config) -> String {
    let keys = config.described();
    let width = keys.iter().map(|key| key.name.len()).max().unwrap_or_default();
    let line = |key: &metadata::config::Described| {
        let value = if key.sensitive { "(hidden)" } else { key.value.as_deref().unwrap_or("(not set)") };
        format!("{:width$}  {value}  # {}\n", key.name, config.origin(key))
    };
    let remarks =
        config.remarks().iter().map(|remark| format!("# {}: {}\n", remark.what(), remark.keys().join(", ")));
    keys.iter().map(line).chain(remarks).collect()
}

/// Prints to standard output; a reader that went away is no failure.
fn print(text: &str) -> ExitCode {
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

fn refuse(error: &dyn Display) -> ExitCode {
    eprintln!("ottla: {error}");
    ExitCode::FAILURE
}
