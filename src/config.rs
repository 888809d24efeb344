//! What a node was told to be: every source of configuration put together, checked, and each value's origin kept.
//!
//! Sources, those that count more last: Ottla's defaults, a file (`config.toml`, or Java properties where its name ends
//! in `.properties`), the environment (`KAFKA_…`, then `OTTLA_…`), `--set KEY=VALUE`. All use Kafka's names, whose types
//! and defaults are the registry of `metadata::config`. An unknown key is refused where somebody wrote it for Ottla
//! (config.toml, --set), and told once where it may be meant for Kafka (properties, environment).
//!
//! Invariants: nothing else reads the environment; a [`Config`] that exists can be started with.
//!
//! Kafka: `KafkaConfig`, `KafkaDockerWrapper`.

mod environment;
mod file;
mod layer;
mod listeners;
mod properties;
mod providers;
mod quorum;
mod reach;
mod reference;
mod remark;
mod rooms;
mod support;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use figment::{Figment, Provider};
use metadata::config::{BrokerConfig, BrokerConfigError, ConfigSource, Described};
use model::{ClusterId, Map, NodeId};

use layer::Layer;
pub(crate) use listeners::Listener;
pub use listeners::{Address, ListenerError};
pub(crate) use quorum::{Quorum, Roles};
pub(crate) use reach::unreachable;
pub use reference::reference;
pub use remark::Remark;
pub use support::support;

use crate::logging::{Format, Logging};
use crate::memory::Memory;

/// What a node was told to be.
#[derive(Debug)]
pub struct Config {
    /// The values of Kafka's keys.
    pub(crate) broker: BrokerConfig,
    /// Where to listen, and what to tell clients.
    pub(crate) listeners: Vec<Listener>,
    /// What it does, and who else votes on the metadata.
    pub(crate) quorum: Quorum,
    /// The id for a cluster that does not exist yet; without one it makes its own.
    pub(crate) cluster_id: Option<ClusterId>,
    /// How to log.
    pub(crate) logging: Logging,
    /// What a person should know of what was set, though it does not keep the node from starting.
    pub(crate) remarks: Vec<Remark>,
    /// Whether this process runs in a container.
    pub(crate) in_container: bool,
    /// What it may take; without a limit until somebody looks.
    pub(crate) memory: Memory,
    connections_per_ip: Map<IpAddr, usize>,
    origins: BTreeMap<String, String>,
}

/// Where to look for configuration.
#[derive(Debug, Default)]
pub struct Sources {
    /// The file, if one was named.
    pub file: Option<PathBuf>,
    /// The environment.
    pub environment: Vec<(String, String)>,
    /// `KEY=VALUE` of the command line.
    pub set: Vec<String>,
}

/// Why a node cannot be started with what it was told.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message says what each field is")]
pub enum ConfigError {
    /// The file is not there, or may not be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    /// The file is not TOML.
    #[error("{} is not valid TOML: {error}", path.display())]
    NotToml { path: PathBuf, error: Box<figment::Error> },
    /// A provider of values that Ottla does not have.
    #[error(
        "config.providers names {name} of the class {class:?}: Ottla has Kafka's own EnvVarConfigProvider, FileConfigProvider \
         and DirectoryConfigProvider. Use one of these, or write the values out"
    )]
    UnknownProvider { name: String, class: String },
    /// `--set` without a `=`.
    #[error("--set {0} is not of the form KEY=VALUE")]
    NotAPair(String),
    /// A key or a value is wrong.
    #[error("{origin}: {error}")]
    Key { origin: String, error: BrokerConfigError },
    /// Connections of an address that is none.
    #[error("max.connections.per.ip.overrides has the entry {0}, which is not of the form ADDRESS:COUNT")]
    NotAnOverride(String),
    /// A value that stands elsewhere, and nobody said where.
    #[error(
        "{origin}: {error}. ${{…}} stands for another value only where config.providers names a provider for it"
    )]
    Unresolved { origin: String, error: BrokerConfigError },
    /// A provider without its class.
    #[error(
        "config.providers names {name}, and config.providers.{name}.class is not set: set it to \
         org.apache.kafka.common.config.provider.EnvVarConfigProvider, or to FileConfigProvider or DirectoryConfigProvider there"
    )]
    NoProviderClass { name: String },
    /// No listener at all.
    #[error("{origin}: listeners is empty. Name one, like PLAINTEXT://127.0.0.1:9092, or leave the key out")]
    NoListeners { origin: String },
    /// The listeners are wrong.
    #[error(transparent)]
    Listeners(#[from] ListenerError),
    /// An authorizer that is not there.
    #[error(
        "authorizer.class.name asks for {0}, and this version of Ottla has no authorizer. Without it everybody may do \
         everything, so the node does not start: remove the key to allow that"
    )]
    NoAuthorizer(String),
    /// A broker alone that knows no controllers.
    #[error(
        "process.roles is broker, and controller.quorum.voters does not say where the controllers are. Name them there, \
         as ID@HOST:PORT, or set process.roles to broker,controller"
    )]
    NoControllers,
    /// A broker alone that is named as a voter.
    #[error(
        "If process.roles contains just the 'broker' role, the node id {node_id} must not be included in the set of voters \
         controller.quorum.voters={voters}"
    )]
    VotingBroker { node_id: i64, voters: String },
    /// The metadata log would be in a folder of its own.
    #[error(
        "metadata.log.dir is {0}, which is none of log.dirs: this version of Ottla keeps the metadata log in one of them. \
         Add it to log.dirs, or remove the key"
    )]
    MetadataElsewhere(String),
    /// Not among its own voters.
    #[error(
        "If process.roles contains the 'controller' role, the node id {node_id} must be included in the set of voters \
         controller.quorum.voters={voters}"
    )]
    NotAVoter { node_id: i64, voters: String },
}

/// Where nothing else is said: this machine only, for a node that asks nobody who he is.
const LOCAL_LISTENER: &str = "PLAINTEXT://127.0.0.1:9092";

/// The image sets this variable: within a container 127.0.0.1 is the container alone, so that a node listens at every
/// address where nothing else is said, and tells its clients localhost, for they come by a published port.
const IN_IMAGE: &str = "OTTLA_IN_IMAGE";

impl Sources {
    /// This process's environment, with a file and pairs of the command line.
    pub fn of_process(file: Option<PathBuf>, set: Vec<String>) -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self { file, environment: std::env::vars_os().filter_map(text).collect(), set }
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.environment
            .iter()
            .find(|each| each.0 == name)
            .map(|each| each.1.as_str())
            .filter(|text| !text.is_empty())
    }

    /// The layers that were given, the strongest last.
    fn layers(&self) -> Result<Vec<Layer>, ConfigError> {
        let mut layers = Vec::new();
        if let Some(path) = &self.file {
            layers.push(file::read(path)?);
        }
        layers.extend(environment::variables(&self.environment).into_iter().map(Layer::of_variable));
        layers.push(Layer::of_command_line(&self.set)?);
        Ok(layers)
    }

    fn is_java(&self) -> bool {
        self.file.as_deref().is_some_and(file::is_properties)
    }
}

impl Config {
    /// Puts the sources together.
    ///
    /// # Errors
    /// The first thing that is wrong, with its origin.
    pub fn load(sources: &Sources) -> Result<Self, ConfigError> {
        let mut layers = sources.layers()?;
        providers::resolve(&mut layers, &sources.environment)?;
        let mut remarks = remark::Remarks::default();
        for layer in &layers {
            layer.check(&mut remarks)?;
        }
        let values = merged(with_defaults(layers, sources));
        let mut broker = BrokerConfig::default();
        let mut origins = BTreeMap::new();
        for (key, (value, origin)) in values {
            refuse_authorizer(&key, &value)?;
            match broker.set(&key, &value) {
                Ok(accepted) => remarks.accepted(&key, accepted),
                Err(_) => continue, // told by the layer's check
            }
            origins.insert(key, origin);
        }
        let quorum = Quorum::of(&broker.layers())?;
        let overrides = broker.layers().text("max.connections.per.ip.overrides").unwrap_or_default();
        Ok(Self {
            listeners: listeners::listeners(&broker.layers(), quorum.roles)?,
            quorum,
            cluster_id: sources.variable("CLUSTER_ID").map(ClusterId::from),
            logging: logging(sources, &broker),
            remarks: remarks.into_all(),
            connections_per_ip: rooms::connections_per_ip(&overrides)?,
            in_container: reach::in_container(sources.variable("KUBERNETES_SERVICE_HOST").is_some()),
            memory: Memory::default(),
            broker,
            origins,
        })
    }

    /// Every key of brokers with the value that counts.
    pub fn described(&self) -> Vec<Described> {
        self.broker.layers().describe_broker(|_| true)
    }

    /// Where a key's value comes from.
    pub fn origin(&self, key: &Described) -> &str {
        match key.source {
            ConfigSource::Default => "default",
            _ => self.origins.get(key.name).map_or("an older name of the key", String::as_str),
        }
    }

    /// What a person should know of what was set, though it does not keep the node from starting.
    pub fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    /// The place among `log_dirs()` of the folder with the metadata log: the first, where `metadata.log.dir` says nothing.
    ///
    /// # Errors
    /// It is none of them.
    pub fn metadata_folder(&self) -> Result<usize, ConfigError> {
        match self.broker.layers().text("metadata.log.dir").filter(|dir| !dir.is_empty()) {
            None => Ok(0),
            Some(dir) => {
                let place = self.log_dirs().iter().position(|folder| folder == Path::new(&dir));
                place.ok_or(ConfigError::MetadataElsewhere(dir))
            }
        }
    }

    /// The folders that hold the partitions.
    pub(crate) fn log_dirs(&self) -> Vec<PathBuf> {
        let layers = self.broker.layers();
        let named = layers.list("log.dirs");
        let dirs = if named.is_empty() { layers.list("log.dir") } else { named };
        dirs.iter().map(|dir| Path::new(dir).to_owned()).collect()
    }

    /// This node's number.
    pub(crate) fn node_id(&self) -> NodeId {
        // The registry bounds it: an INT that is not negative.
        NodeId(self.broker.layers().integer("node.id") as i32)
    }
}

/// Ottla's own defaults under what was given. A file of Kafka's keeps Kafka's default, every address.
fn with_defaults(layers: Vec<Layer>, sources: &Sources) -> Vec<Layer> {
    let set = |key: &str| layers.iter().rev().find_map(|layer| layer.get(key)).map(str::to_owned);
    let ours = match (set("listeners"), set("advertised.listeners")) {
        (Some(_), _) => Vec::new(),
        (None, Some(advertised)) => vec![("listeners", at_every_address(&advertised))],
        (None, None) if sources.is_java() => Vec::new(),
        (None, None) if sources.variable(IN_IMAGE).is_some() => vec![
            ("listeners", "PLAINTEXT://0.0.0.0:9092".to_owned()),
            ("advertised.listeners", "PLAINTEXT://localhost:9092".to_owned()),
        ],
        (None, None) => vec![("listeners", LOCAL_LISTENER.to_owned())],
    };
    ours.into_iter().map(|(key, value)| Layer::of_ottla(key, value)).chain(layers).collect()
}

/// Listeners for what clients are told: the same names and ports, at every address of this machine.
fn at_every_address(advertised: &str) -> String {
    let every = |listener: &str| match (listener.split_once("://"), listener.rsplit_once(':')) {
        (Some((name, _)), Some((_, port))) => format!("{}://0.0.0.0:{port}", name.trim()),
        _ => listener.to_owned(),
    };
    advertised.split(',').map(every).collect::<Vec<_>>().join(",")
}

/// Key, value and origin of what counts.
fn merged(layers: Vec<Layer>) -> BTreeMap<String, (String, String)> {
    let figment = layers.into_iter().fold(Figment::new(), Figment::merge);
    let dict = figment.data().unwrap_or_default().remove(&figment::Profile::Default).unwrap_or_default();
    let with_origin = |(key, value): (String, figment::value::Value)| {
        let origin = figment.get_metadata(value.tag()).map_or_else(String::new, |each| each.name.to_string());
        (key, (layer::text(&value), origin))
    };
    dict.into_iter().map(with_origin).collect()
}

fn refuse_authorizer(key: &str, value: &str) -> Result<(), ConfigError> {
    let asked = key == "authorizer.class.name" && !value.trim().is_empty();
    if asked { Err(ConfigError::NoAuthorizer(value.to_owned())) } else { Ok(()) }
}

/// `RUST_LOG`, else the variable that Kafka's images have for the root logger.
fn logging(sources: &Sources, broker: &BrokerConfig) -> Logging {
    let filter = sources.variable("RUST_LOG").map(str::to_owned);
    let level = || {
        sources.variable("KAFKA_LOG4J_ROOT_LOGLEVEL").map(|level| format!("ottla={}", level.to_lowercase()))
    };
    let json = broker.layers().text("log.format").as_deref() == Some("json");
    Logging { filter: filter.or_else(level), format: if json { Format::Json } else { Format::Text } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(environment: &[(&str, &str)], set: &[&str]) -> Sources {
        let environment = environment.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        Sources { file: None, environment, set: set.iter().map(|pair| (*pair).to_owned()).collect() }
    }

    fn loaded(environment: &[(&str, &str)], set: &[&str]) -> Config {
        Config::load(&sources(environment, set)).expect("valid")
    }

    fn refusal(environment: &[(&str, &str)], set: &[&str]) -> String {
        Config::load(&sources(environment, set)).expect_err("refused").to_string()
    }

    fn with_file(name: &str, text: &str) -> Result<Config, ConfigError> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        Config::load(&Sources { file: Some(path), ..Sources::default() })
    }

    fn origin_of<'a>(config: &'a Config, name: &str) -> (Option<String>, &'a str) {
        let key = config.described().into_iter().find(|key| key.name == name).expect("a key");
        (key.value.clone(), config.origin(&key))
    }

    #[test]
    fn without_configuration_a_node_listens_at_this_machine_only() {
        let config = loaded(&[], &[]);
        assert_eq!(config.listeners[0].bind.to_string(), "127.0.0.1:9092");
        assert_eq!(config.log_dirs(), [PathBuf::from("data")]);
        assert_eq!(config.node_id(), NodeId(1));
    }

    #[test]
    fn the_command_line_counts_more_than_the_environment_and_ottlas_variables_more_than_kafkas() {
        let environment = [("KAFKA_NUM_PARTITIONS", "2"), ("KAFKA_NODE_ID", "2"), ("OTTLA_NODE_ID", "3")];
        let config = loaded(&environment, &["num.partitions=4"]);
        assert_eq!(origin_of(&config, "num.partitions"), (Some("4".into()), "command line"));
        assert_eq!(origin_of(&config, "node.id"), (Some("3".into()), "environment variable OTTLA_NODE_ID"));
        assert_eq!(origin_of(&config, "log.retention.hours"), (Some("168".into()), "default"));
    }

    #[test]
    fn broker_id_of_one_source_and_node_id_of_another_are_one_key() {
        assert_eq!(loaded(&[("KAFKA_NODE_ID", "2")], &["broker.id=7"]).node_id(), NodeId(7));
        assert_eq!(loaded(&[("KAFKA_BROKER_ID", "2")], &["node.id=7"]).node_id(), NodeId(7));
    }

    #[test]
    fn toml_keys_may_be_quoted_or_nested_and_values_of_any_type() {
        let text = "\"max.connections\" = 10\n\"max.connections.per.ip\" = 5\nnum.partitions = 3\n\
                    [log]\ndirs = [\"a\", \"b\"]\ncleaner.enable = false\n";
        let config = with_file("config.toml", text).expect("valid");
        assert_eq!(config.log_dirs(), [PathBuf::from("a"), PathBuf::from("b")]);
        let layers = config.broker.layers();
        assert_eq!((layers.integer("max.connections"), layers.integer("num.partitions")), (10, 3));
    }

    #[test]
    fn an_unknown_key_of_a_toml_file_is_refused_with_the_one_that_was_meant() {
        let why = with_file("config.toml", "num.partitons = 3").expect_err("refused").to_string();
        assert!(
            why.ends_with(
                "config.toml: Unknown configuration key num.partitons, did you mean num.partitions?"
            ),
            "{why}"
        );
    }

    #[test]
    fn keys_of_a_properties_file_that_are_not_needed_are_one_remark() {
        let text =
            "ssl.keystore.location=/k\nnum.partitons=3\nlistener.name.a.ssl.key.password=x\nlog.dirs=/d\n";
        let config = with_file("server.properties", text).expect("valid");
        assert_eq!(config.log_dirs(), [PathBuf::from("/d")]);
        let remarks: Vec<String> = config.remarks.iter().map(|remark| remark.keys().join(", ")).collect();
        assert_eq!(remarks.len(), 2, "{remarks:?}");
        assert!(
            remarks[0].contains("listener.name.a.ssl.key.password, ssl.keystore.location"),
            "{remarks:?}"
        );
        assert!(remarks[1].contains("num.partitons (did you mean num.partitions?)"), "{remarks:?}");
    }

    #[test]
    fn a_properties_file_without_listeners_has_kafkas_default() {
        let config = with_file("server.properties", "node.id=1\n").expect("valid");
        assert_eq!(config.listeners[0].bind.to_string(), ":9092");
    }

    #[test]
    fn in_the_image_a_node_listens_at_every_address_whatever_else_it_is_told() {
        let image = (IN_IMAGE, "1");
        let addresses = |config: &Config| {
            let [listener] = &config.listeners[..] else { panic!("one listener") };
            (listener.bind.to_string(), listener.advertised.as_ref().map(ToString::to_string))
        };
        let told = loaded(&[image], &["num.partitions=3"]);
        assert_eq!(addresses(&told), ("0.0.0.0:9092".into(), Some("localhost:9092".into())));
        assert_eq!(told.remarks, []);
        let listeners = loaded(&[image], &["listeners=PLAINTEXT://127.0.0.1:1"]);
        assert_eq!(addresses(&listeners), ("127.0.0.1:1".into(), Some("127.0.0.1:1".into())));
        let advertised = loaded(&[image, ("KAFKA_ADVERTISED_LISTENERS", "PLAINTEXT://kafka:2")], &[]);
        assert_eq!(addresses(&advertised), ("0.0.0.0:2".into(), Some("kafka:2".into())));
    }

    #[test]
    fn advertised_listeners_alone_are_listened_at_on_every_address() {
        let environment = [("KAFKA_ADVERTISED_LISTENERS", "PLAINTEXT://kafka:9092,")];
        let config = loaded(&environment, &[]);
        assert_eq!(config.listeners[0].bind.to_string(), "0.0.0.0:9092");
        assert_eq!(
            config.listeners[0].advertised.as_ref().map(ToString::to_string),
            Some("kafka:9092".into())
        );
    }

    #[test]
    fn a_missing_file_and_a_wrong_value_are_refused_with_their_origin() {
        let missing = Sources { file: Some("no/such/file.toml".into()), ..Sources::default() };
        let why = Config::load(&missing).expect_err("refused").to_string();
        assert!(why.starts_with("cannot read no/such/file.toml: "), "{why}");
        let why = refusal(&[("KAFKA_NODE_ID", "x")], &[]);
        assert_eq!(
            why,
            "environment variable KAFKA_NODE_ID: Invalid value x for configuration node.id: Not a number of type INT"
        );
        assert_eq!(refusal(&[], &["a"]), "--set a is not of the form KEY=VALUE");
        assert!(refusal(&[], &["listeners="]).contains("listeners is empty. Name one"));
        assert!(
            refusal(&[], &["node.id=${env:X}"])
                .contains("node.id: Not a number of type INT. ${…} stands for")
        );
        assert!(refusal(&[], &["config.providers=env"]).contains("config.providers.env.class is not set"));
    }

    #[test]
    fn keys_of_kafkas_authorizer_are_known_and_not_acted_on() {
        let config = loaded(&[("KAFKA_SUPER_USERS", "User:a")], &["allow.everyone.if.no.acl.found=true"]);
        let keys = ["allow.everyone.if.no.acl.found", "super.users"].map(str::to_owned);
        assert_eq!(config.remarks, [Remark::Later(keys.to_vec())]);
    }

    #[test]
    fn what_this_version_has_not_is_refused() {
        assert!(refusal(&[], &["authorizer.class.name=x.Y"]).contains("no authorizer"));
        assert!(refusal(&[], &["process.roles=broker"]).contains("where the controllers are"));
        let voting = ["process.roles=broker", "controller.quorum.voters=1@a:1"];
        assert!(refusal(&[], &voting).contains("must not be included"));
        assert!(
            refusal(&[], &["controller.quorum.voters=1@a:1,2@b:1"]).contains("controller.listener.names")
        );
        assert!(refusal(&[], &["controller.quorum.voters=2@b:1"]).contains("the node id 1 must be included"));
    }

    #[test]
    fn a_controller_alone_may_have_others_beside_it_and_serves_no_clients() {
        let alone =
            ["process.roles=controller", "controller.listener.names=C", "listeners=C://127.0.0.1:9093"];
        let voters = [&alone[..], &["controller.quorum.voters=1@a:1,2@b:1"]].concat();
        let config = loaded(&[], &voters);
        assert!(config.is_one_of_several());
        let place = config.quorum_place();
        assert_eq!((place.listeners[0].host.as_str(), place.listeners[0].port), ("a", 1));
        let advertised = [&alone[..], &["advertised.listeners=PLAINTEXT://a:2,C://a:3"]].concat();
        assert_eq!(loaded(&[], &advertised).quorum_place().listeners[0].port, 3);
        let clients = [&alone[..2], &["listeners=C://127.0.0.1:9093,PLAINTEXT://127.0.0.1:9092"]].concat();
        assert!(refusal(&[], &clients).contains("must only contain KRaft controller listeners"));
    }

    #[test]
    fn the_metadata_log_is_in_one_of_the_log_folders() {
        let folder =
            |text: &str| with_file("server.properties", text).and_then(|config| config.metadata_folder());
        assert_eq!(folder("log.dirs=/a,/b\n").expect("valid"), 0);
        assert_eq!(folder("log.dirs=/a,/b\nmetadata.log.dir=/b\n").expect("valid"), 1);
        let error = folder("log.dirs=/a,/b\nmetadata.log.dir=/c\n").expect_err("it is none of them");
        assert!(error.to_string().contains("/c"), "{error}");
    }

    #[test]
    fn the_log_filter_is_rusts_or_else_kafkas() {
        let kafka = ("KAFKA_LOG4J_ROOT_LOGLEVEL", "DEBUG");
        assert_eq!(loaded(&[kafka], &[]).logging.filter.as_deref(), Some("ottla=debug"));
        assert_eq!(loaded(&[kafka, ("RUST_LOG", "trace")], &[]).logging.filter.as_deref(), Some("trace"));
        assert_eq!(loaded(&[], &["log.format=json"]).logging.format, Format::Json);
    }
}
