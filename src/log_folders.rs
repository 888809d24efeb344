//! The log folders at a start: whether they belong together, and to this node; then they are taken into use.
//!
//! Invariant: what does not fit is refused before anything is written to one of them, or renamed in it.
//!
//! Kafka: `MetaPropertiesEnsemble`, `LogManager`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use env::Env;
use model::{ClusterId, TopicPartition};
use rustix::fs::{Access, access};
use storage::{FolderError, LogFolder, MetaProperties, TailBudget};

use crate::assemble::{Begun, StartError};
use crate::config::{Config, Roles};

/// Opens all log folders, as one cluster's and node's; the first start gives them their ids. One whose disk failed is
/// offline from the start, as it would be had it failed later; only the metadata log's must work.
pub(crate) fn open(
    env: &Env,
    config: &Config,
    begun: &Begun,
) -> Result<(ClusterId, Vec<Arc<LogFolder>>), StartError> {
    let (dirs, metadata) = (config.log_dirs(), config.metadata_folder()?);
    require_metadata(env, config, &dirs, metadata)?;
    let found = dirs.iter().map(|dir| readable_meta(env, dir)).collect::<Result<Vec<_>, _>>()?;
    let formed = begun.beginning.as_ref().map(|beginning| &beginning.cluster_id);
    let cluster_id = settle_cluster_id(&dirs, &found, formed.or(config.cluster_id.as_ref()))?
        .unwrap_or_else(|| ClusterId::from(env.rng.uuid().to_string()));
    let tail = TailBudget::new(config.memory.tail_bytes());
    let opened = |(at, dir): (usize, &PathBuf)| {
        let known = begun.directory_id.filter(|_| at == metadata);
        let identity = MetaProperties {
            cluster_id: cluster_id.clone(),
            node_id: config.node_id(),
            directory_id: Some(known.unwrap_or_else(|| env.rng.uuid())),
        };
        let disk = &env.disk;
        match LogFolder::open(disk.clone(), dir, &identity, tail.clone()) {
            Err(error @ FolderError::Io { .. }) if at != metadata => {
                Ok(LogFolder::offline_from_start(disk.clone(), dir, &identity, &error))
            }
            result => result,
        }
    };
    let folders = dirs.iter().enumerate().map(|folder| opened(folder).map(Arc::new));
    let folders = folders.collect::<Result<_, _>>()?;
    Ok((cluster_id, folders))
}

/// Where a listener cannot be bound: a node that has the folder already is the better explanation.
pub(crate) fn refuse_used(env: &Env, config: &Config) -> Result<(), FolderError> {
    match config.log_dirs().into_iter().find(|dir| LogFolder::is_used(env.disk.as_ref(), dir)) {
        Some(folder) => Err(FolderError::Locked { folder }),
        None => Ok(()),
    }
}

/// An error of a folder on this machine as a person needs it: with whole paths, the user, and what helps.
pub(crate) fn explained(error: &StartError) -> String {
    let StartError::Folder(FolderError::Io { folder, path, cause }) = error else { return error.to_string() };
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let there = whole.ancestors().find(|path| path.exists());
    let remedy = if folder.ancestors().any(Path::is_file) {
        "log.dirs must name folders, and this is a file".to_owned()
    } else if there.is_some_and(|path| access(path, Access::WRITE_OK).is_err()) {
        let user = rustix::process::geteuid().as_raw();
        format!("the user with id {user} must be able to write there: change its owner, or log.dirs")
    } else {
        "check the disk and its mount".to_owned()
    };
    format!("{} cannot be used: {cause}; {remedy}", whole.display())
}

/// What a folder's `meta.properties` says; none where it is not there or its disk failed.
fn readable_meta(env: &Env, dir: &Path) -> Result<Option<MetaProperties>, FolderError> {
    match LogFolder::read_meta(env.disk.as_ref(), dir) {
        Err(FolderError::Io { .. }) => Ok(None),
        result => result,
    }
}

/// The id that all folders have and `told` does not contradict; looked at before anything is written to one of them.
fn settle_cluster_id(
    dirs: &[PathBuf],
    found: &[Option<MetaProperties>],
    told: Option<&ClusterId>,
) -> Result<Option<ClusterId>, FolderError> {
    let mut ids = dirs.iter().zip(found).filter_map(|(dir, meta)| Some((dir, &meta.as_ref()?.cluster_id)));
    let Some((first, id)) = ids.next() else { return Ok(told.cloned()) };
    if let Some((folder, other)) = ids.find(|(_, other)| *other != id) {
        return Err(FolderError::TwoClusters {
            folder: folder.clone(),
            found: other.clone(),
            other: first.clone(),
            expected: id.clone(),
        });
    }
    match told {
        Some(told) if told != id => Err(FolderError::OtherCluster {
            folder: first.clone(),
            found: id.clone(),
            expected: told.clone(),
        }),
        _ => Ok(Some(id.clone())),
    }
}

/// Refuses partitions whose metadata log is lost: with an empty one in its place they would all be unknown, and set aside.
/// Several controllers have it from one another.
fn require_metadata(env: &Env, config: &Config, dirs: &[PathBuf], metadata: usize) -> Result<(), StartError> {
    let disk = env.disk.as_ref();
    // What cannot be read is told when it is opened.
    let has_it_alone = config.quorum.roles == Roles::Combined && !config.is_one_of_several();
    if !has_it_alone || cluster::has_log(disk, &dirs[metadata]).unwrap_or(true) {
        return Ok(());
    }
    for folder in dirs {
        // A first start that was killed leaves an empty metadata log where it should be.
        let is_lost =
            |name: &TopicPartition| *folder != dirs[metadata] || *name != cluster::metadata_partition();
        // A folder that is not there, or whose disk failed, is none of this check's.
        if LogFolder::names(disk, folder).is_ok_and(|names| names.iter().any(is_lost)) {
            let metadata = dirs[metadata].clone();
            return Err(FolderError::NoMetadata { folder: folder.clone(), metadata }.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use model::NodeId;

    use super::*;

    fn settled(ids: &[Option<&str>], told: Option<&str>) -> Result<Option<ClusterId>, FolderError> {
        let meta = |id: Option<&str>| {
            let cluster_id = ClusterId::from(id?);
            Some(MetaProperties { cluster_id, node_id: NodeId(1), directory_id: None })
        };
        let dirs: Vec<PathBuf> = (0..ids.len()).map(|at| PathBuf::from(format!("/{at}"))).collect();
        let found: Vec<_> = ids.iter().copied().map(meta).collect();
        settle_cluster_id(&dirs, &found, told.map(ClusterId::from).as_ref())
    }

    #[test]
    fn the_folders_say_the_cluster_or_else_who_started_the_node() {
        assert_eq!(settled(&[None, None], None).expect("an answer"), None);
        assert_eq!(settled(&[None], Some("a")).expect("an answer"), Some("a".into()));
        assert_eq!(settled(&[None, Some("a")], None).expect("an answer"), Some("a".into()));
        let why = settled(&[Some("a")], Some("b")).expect_err("another").to_string();
        assert!(why.contains("Set CLUSTER_ID=a"), "{why}");
    }

    #[test]
    fn folders_of_two_clusters_are_refused_whatever_cluster_id_says() {
        for told in [None, Some("a"), Some("b"), Some("c")] {
            let why = settled(&[Some("a"), None, Some("b")], told).expect_err("two").to_string();
            assert!(why.contains("/2/meta.properties. Expected a as in /0, but read b"), "{why}");
            assert!(!why.contains("CLUSTER_ID="), "{why}");
        }
    }
}
