//! A node's life: start, health, stop, kill, start again.

use std::net::TcpStream;

use rustix::process::Signal;

use crate::node::Node;

#[test]
fn a_node_starts_from_an_empty_folder_and_says_where_it_is() {
    let node = Node::start();
    let said = node.start.join("\n");
    for words in [
        "Ottla starts",
        "node_id=1",
        "data=",
        "clients_are_told",
        &node.address,
        "cluster_id=",
        "RECOVERY to RUNNING",
    ] {
        assert!(said.contains(words), "no {words} in {said}");
    }
    TcpStream::connect(&node.address).expect("a listener");
}

#[test]
fn health_says_whether_the_node_answers() {
    let mut node = Node::start();
    assert!(node.command("health").output().expect("an end").status.success());
    node.kill();
    assert_eq!(node.command("health").output().expect("an end").status.code(), Some(1));
}

#[test]
fn sigterm_and_sigint_end_a_node_with_exit_code_0() {
    for signal in [Signal::TERM, Signal::INT] {
        assert_eq!(Node::start().stop(signal).code(), Some(0), "{signal:?}");
    }
}

#[test]
fn a_node_starts_again_after_a_stop_and_after_a_kill() {
    let mut node = Node::start();
    let id = cluster_id(&node);
    node.stop(Signal::TERM);
    node.restart();
    assert_eq!(cluster_id(&node), id);
    node.kill();
    node.restart();
    assert_eq!(cluster_id(&node), id);
}

#[test]
fn a_second_node_in_the_same_folder_is_refused() {
    let node = Node::start();
    let other = node.command("serve").output().expect("an end");
    assert_eq!(other.status.code(), Some(1), "{other:?}");
    let said = String::from_utf8_lossy(&other.stdout);
    assert!(said.contains("is used by another process"), "{said}");
}

#[test]
fn a_folder_of_another_cluster_is_refused_with_cause_and_remedy_and_stays_as_it_is() {
    let mut node = Node::start();
    let before = cluster_id(&node);
    node.stop(Signal::TERM);
    let refused =
        node.command("serve").env("CLUSTER_ID", "5L6g3nShT-eMCtK--X86sw").output().expect("it runs");
    assert!(!refused.status.success());
    let said = String::from_utf8_lossy(&refused.stdout);
    let cause = format!("Expected 5L6g3nShT-eMCtK--X86sw, but read {before}");
    assert!(said.contains(&cause) && said.contains(&format!("Set CLUSTER_ID={before}")), "{said}");
    node.restart();
    assert_eq!(cluster_id(&node), before);
}

#[test]
fn partitions_without_their_metadata_log_are_refused_and_stay_as_they_are() {
    let mut node = Node::start();
    node.stop(Signal::TERM);
    let [partition, metadata, away] =
        ["greetings-0", "__cluster_metadata-0", "away"].map(|name| node.data().join(name));
    std::fs::create_dir(&partition).expect("a folder");
    std::fs::rename(&metadata, &away).expect("moved away");
    let said = refused(&node);
    assert!(said.contains("has no metadata log") && said.contains("metadata.log.dir"), "{said}");
    assert!(partition.exists() && !metadata.exists());
    std::fs::rename(&away, &metadata).expect("restored");
    node.restart();
}

#[test]
fn a_reserved_directory_id_is_refused_with_its_file() {
    let mut node = Node::start();
    node.stop(Signal::TERM);
    let path = node.data().join("meta.properties");
    let text = std::fs::read_to_string(&path).expect("a file");
    let (before, after) = text.split_once("directory.id=").expect("an id");
    std::fs::write(&path, format!("{before}directory.id=AAAAAAAAAAAAAAAAAAAAAQ{}", &after[22..]))
        .expect("written");
    let said = refused(&node);
    assert!(
        said.contains("meta.properties: has the directory.id") && said.contains("restore the file"),
        "{said}"
    );
}

/// What a node says that does not start.
fn refused(node: &Node) -> String {
    let output = node.command("serve").output().expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn cluster_id(node: &Node) -> String {
    let id = node.start.iter().find_map(|line| Some(line.split_once("cluster_id=")?.1));
    id.expect("a line with the cluster's id").split(' ').next().expect("a word").to_owned()
}
