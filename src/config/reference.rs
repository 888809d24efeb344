//! `config.toml`: every key with its default and what it does, made of the registry. The one at the root of the project
//! is this text; a test keeps it so.

use std::fmt::Write;

use metadata::config::{BROKER_KEYS, ConfigKey, ConfigType};

use super::LOCAL_LISTENER;

const HEAD: &str = "\
# Configuration of Ottla: ottla serve config.toml
#
# Every key with its default. The names are Apache Kafka's; write.caching.default and log.format are Ottla's own. Keys
# are quoted because some begin like others. The same keys are taken from a server.properties file, from the environment
# (OTTLA_NUM_PARTITIONS or KAFKA_NUM_PARTITIONS for num.partitions) and from --set num.partitions=3; of all these the
# last counts. `ottla config` shows what a node would start with, and where each value comes from.
";

/// The text of `config.toml`.
pub fn reference() -> String {
    let mut text = HEAD.to_owned();
    for used in [true, false] {
        if !used {
            text.push_str("\n\n# Known, and without effect in this version\n");
        }
        // broker.id is node.id by its older name.
        for key in BROKER_KEYS.iter().filter(|key| key.used == used && key.name != "broker.id") {
            entry(&mut text, key);
        }
    }
    text
}

fn entry(text: &mut String, key: &ConfigKey) {
    text.push('\n');
    for line in wrapped(key.doc, 118) {
        let _ = writeln!(text, "# {line}");
    }
    let default = if key.name == "listeners" { Some(LOCAL_LISTENER) } else { key.default };
    match default {
        Some(default) => {
            let _ = writeln!(text, "# \"{}\" = {}", key.name, literal(key.kind, default));
        }
        None => {
            let _ = writeln!(text, "# \"{}\" is not set", key.name);
        }
    }
}

fn literal(kind: ConfigType, default: &str) -> String {
    match kind {
        ConfigType::Boolean | ConfigType::Int | ConfigType::Short | ConfigType::Long | ConfigType::Double => {
            default.to_owned()
        }
        ConfigType::String | ConfigType::List | ConfigType::Class | ConfigType::Password => {
            format!("{default:?}")
        }
    }
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("never empty");
        if last.is_empty() {
            last.push_str(word);
        } else if last.len() + 1 + word.len() <= width {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Sources};
    use super::*;

    #[test]
    fn config_toml_at_the_root_is_up_to_date() {
        let there = include_str!("../../config.toml");
        assert!(there == reference(), "run `cargo run -- reference > config.toml`");
    }

    #[test]
    fn config_toml_with_every_line_made_to_count_says_the_defaults() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config.toml");
        let lines = reference().replace("\n# \"", "\n\"").replace(" is not set\n", " is not set #\n");
        let set: Vec<&str> = lines.lines().filter(|line| !line.ends_with(" is not set #")).collect();
        std::fs::write(&path, set.join("\n")).expect("a file");
        let config = Config::load(&Sources { file: Some(path), ..Sources::default() }).expect("valid");
        let plain = Config::load(&Sources::default()).expect("valid");
        for (with_file, without) in config.described().into_iter().zip(plain.described()) {
            assert!(with_file.value == without.value || without.name == "broker.id", "{}", without.name);
        }
    }
}
