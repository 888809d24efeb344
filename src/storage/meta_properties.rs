//! `meta.properties`: whose log folder this is. A Java properties file.
//!
//! Kafka: `MetaProperties`, `PropertiesUtils`; KIP-631, KIP-858.

use model::{ClusterId, DirectoryId, NodeId};

pub(crate) const FILE: &str = "meta.properties";

/// Whose log folder it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaProperties {
    /// `cluster.id`.
    pub cluster_id: ClusterId,
    /// `node.id`.
    pub node_id: NodeId,
    /// `directory.id`: this folder, wherever it is mounted. None in a file of before Kafka 3.7.
    pub directory_id: Option<DirectoryId>,
}

impl MetaProperties {
    /// The file's text.
    pub(crate) fn encode(&self) -> String {
        let cluster_id = escape(self.cluster_id.as_str());
        let directory_id = self.directory_id.map_or_else(String::new, |id| format!("directory.id={id}\n"));
        format!("#\ncluster.id={cluster_id}\n{directory_id}node.id={}\nversion=1\n", self.node_id)
    }

    /// Reads the file.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "is not text".to_owned())?;
        let pairs: Vec<_> = text.lines().filter_map(pair).collect();
        let value = |key: &str| pairs.iter().rfind(|pair| pair.0 == key).map(|pair| pair.1.as_str());
        match value("version") {
            Some("1") => {}
            Some(version) => {
                return Err(format!("has version {version}; only version 1 (KRaft) is supported"));
            }
            None => return Err("has no version".to_owned()),
        }
        let directory_id = value("directory.id").map(|id| match id.parse::<DirectoryId>() {
            Ok(id) if id.is_reserved() => Err(format!("has the directory.id {id}, which is reserved")),
            parsed => parsed.map_err(|_| wrong("directory.id", id)),
        });
        let node_id = value("node.id").ok_or("has no node.id")?;
        Ok(Self {
            cluster_id: value("cluster.id").filter(|id| !id.is_empty()).ok_or("has no cluster.id")?.into(),
            node_id: NodeId(node_id.parse().map_err(|_| wrong("node.id", node_id))?),
            directory_id: directory_id.transpose()?,
        })
    }
}

fn wrong(key: &str, value: &str) -> String {
    format!("has the malformed {key} {value:?}")
}

/// A line's key and value; none for comments and empty lines. Continued lines and `\u` escapes do not occur in it.
fn pair(line: &str) -> Option<(String, String)> {
    let line = line.trim_start();
    if line.is_empty() || line.starts_with(['#', '!']) {
        return None;
    }
    let (key, value) = line.split_once(['=', ':'])?;
    Some((key.trim_end().to_owned(), unescape(value.trim_start())))
}

fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '\\' | '=' | ':' | '#' | '!' | ' ') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

fn unescape(value: &str) -> String {
    let mut chars = value.chars();
    let mut plain = String::with_capacity(value.len());
    while let Some(c) = chars.next() {
        plain.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kafkas_file_is_understood() {
        let text = "#\n#Mon Nov 30 09:00:00 UTC 2026\nnode.id=3\ndirectory.id=AAAAAAAAAAAAAAAAAAAAZA\nversion=1\ncluster.id=a\\=b\n";
        let meta = MetaProperties::parse(text.as_bytes()).unwrap();
        let expected = MetaProperties {
            cluster_id: "a=b".into(),
            node_id: NodeId(3),
            directory_id: Some(model::Uuid(100u128.to_be_bytes())),
        };
        assert_eq!(meta, expected);
        assert_eq!(MetaProperties::parse(meta.encode().as_bytes()), Ok(meta));
    }

    #[test]
    fn what_is_cut_or_of_zookeepers_time_is_an_error() {
        for text in ["", "version=1\n", "version=0\nbroker.id=1\n", "version=1\nnode.id=x\ncluster.id=c\n"] {
            assert!(MetaProperties::parse(text.as_bytes()).is_err(), "{text:?}");
        }
        let with_half_an_id = "version=1\nnode.id=1\ncluster.id=c\ndirectory.id=AAAA\n";
        assert!(MetaProperties::parse(with_half_an_id.as_bytes()).is_err());
        assert!(MetaProperties::parse(&[0xfe; 40]).is_err());
    }

    #[test]
    fn a_reserved_directory_id_is_an_error() {
        for id in [0u128, 1, 99].map(|id| model::Uuid(id.to_be_bytes())) {
            let text = format!("version=1\nnode.id=1\ncluster.id=c\ndirectory.id={id}\n");
            assert!(MetaProperties::parse(text.as_bytes()).is_err_and(|why| why.contains("is reserved")));
        }
    }
}
