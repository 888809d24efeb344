//! `ottla`'s commands that need no node.

use std::process::{Command, Output};

/// Runs `ottla`, with no environment but `variables`.
fn ottla(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ottla"));
    command.args(arguments).env_clear().envs(variables.iter().copied());
    command.output().expect("the binary runs")
}

fn said(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let output = ottla(arguments, variables);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// What it said of its refusal; the exit code is 1.
fn refused(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let output = ottla(arguments, variables);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
    String::from_utf8(output.stderr).expect("text")
}

fn line_of(text: &str, key: &str) -> String {
    let line = text.lines().find(|line| line.split(' ').next() == Some(key)).expect("a line of the key");
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn version_says_the_version() {
    assert_eq!(said(&["version"], &[]), concat!("ottla ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn config_says_each_value_and_its_origin() {
    let text = said(&["config", "--set", "num.partitions=4"], &[("KAFKA_NODE_ID", "3")]);
    assert_eq!(line_of(&text, "num.partitions"), "num.partitions 4 # command line");
    assert_eq!(line_of(&text, "node.id"), "node.id 3 # environment variable KAFKA_NODE_ID");
    assert_eq!(line_of(&text, "log.dir"), "log.dir data # default");
}

#[test]
fn config_reads_a_file_of_kafkas() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("server.properties");
    std::fs::write(&path, "num.partitions = 7\nzookeeper.connect=localhost:2181\n").expect("a file");
    let path = path.to_str().expect("a text");
    let text = said(&["config", path], &[]);
    assert_eq!(line_of(&text, "num.partitions"), format!("num.partitions 7 # {path}"));
    assert!(text.contains("not need are ignored: zookeeper.connect"), "{text}");
}

#[test]
fn an_unknown_key_is_refused_with_the_one_that_was_meant() {
    let why = refused(&["config", "--set", "num.partitons=4"], &[]);
    assert!(why.contains("did you mean num.partitions?"), "{why}");
}

#[test]
fn a_listener_that_clients_cannot_be_told_is_refused_in_kafkas_words() {
    let why = refused(&["config", "--set", "advertised.listeners=PLAINTEXT://0.0.0.0:9092"], &[]);
    assert!(
        why.contains("cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address."),
        "{why}"
    );
}

#[test]
fn an_empty_controller_that_names_no_voters_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let dirs = format!("log.dirs={}", folder.path().display());
    let settings = [
        "process.roles=controller",
        "controller.listener.names=CONTROLLER",
        "listeners=CONTROLLER://127.0.0.1:0",
        "controller.quorum.bootstrap.servers=127.0.0.1:1",
        &dirs,
    ];
    let arguments: Vec<&str> = settings.iter().flat_map(|pair| ["--set", *pair]).collect();
    let output = ottla(&[&["serve"], &arguments[..]].concat(), &[]);
    let why = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{why}");
    assert!(why.contains("does not say which cluster it is of"), "{why}");
}

#[test]
fn health_fails_where_nobody_answers() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let listeners = format!("listeners=PLAINTEXT://{}", free.local_addr().expect("an address"));
    drop(free);
    let why = refused(&["health", "--set", &listeners], &[]);
    assert!(why.contains("no answer from 127.0.0.1:"), "{why}");
}

#[test]
fn completions_name_the_commands() {
    assert!(said(&["completions", "bash"], &[]).contains("health"));
}

#[test]
fn a_command_line_that_is_none_has_exit_code_2() {
    assert_eq!(ottla(&["--no-such-flag"], &[]).status.code(), Some(2));
}

#[test]
fn a_word_that_is_no_command_and_no_file_is_refused_with_what_was_meant() {
    for (arguments, words) in [
        (&["sevre"][..], "did you mean serve?"),
        (&["--set", "a=b", "config"][..], "the command comes first"),
    ] {
        let output = ottla(arguments, &[]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn a_log_folder_that_is_a_file_is_refused_with_its_whole_path() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let log_dirs = format!("log.dirs={}", file.path().display());
    let output = ottla(&["serve", "--set", "listeners=PLAINTEXT://127.0.0.1:0", "--set", &log_dirs], &[]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        !output.status.success() && said.contains("log.dirs must name folders, and this is a file"),
        "{said}"
    );
}

#[test]
fn a_port_that_is_taken_is_refused_with_what_helps() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let listeners = format!("listeners=PLAINTEXT://{}", taken.local_addr().expect("an address"));
    let folder = tempfile::tempdir().expect("a folder");
    let log_dirs = format!("log.dirs={}", folder.path().display());
    let output = ottla(&["serve", "--set", &listeners, "--set", &log_dirs], &[]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("another process listens there"), "{said}");
}
