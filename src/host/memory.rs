//! How much memory this process may take before the kernel ends it: the limit of its control groups, of either version.
//!
//! ```text
//! /proc/self/cgroup             0::/a/b            4:memory:/a/b
//! below /sys/fs/cgroup          a/b/memory.max     memory/a/b/memory.limit_in_bytes
//! ```
//! A group's limit holds for those in it, so all above it are looked at too; in a container the names are those of its
//! host, and only the top is there.

use std::path::Path;

/// Version 1 says "no limit" by a number that no machine has.
const NO_LIMIT: u64 = 1 << 62;

/// The memory limit of this process in bytes; `None` where there is none or it cannot be seen.
pub fn memory_limit() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    limit_of(Path::new("/sys/fs/cgroup"), &groups)
}

fn limit_of(root: &Path, groups: &str) -> Option<u64> {
    groups.lines().filter_map(|line| limit_of_group(root, line)).min()
}

fn limit_of_group(root: &Path, line: &str) -> Option<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, group) = (fields.next()?, fields.next()?.trim_start_matches('/'));
    let (top, file) = match controllers {
        "" => (root.to_owned(), "memory.max"),
        _ if controllers.split(',').any(|name| name == "memory") => {
            (root.join("memory"), "memory.limit_in_bytes")
        }
        _ => return None,
    };
    Path::new(group).ancestors().filter_map(|group| read(&top.join(group).join(file))).min()
}

fn read(file: &Path) -> Option<u64> {
    let limit = std::fs::read_to_string(file).ok()?.trim().parse().ok()?;
    (limit < NO_LIMIT).then_some(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(files: &[(&str, &str)], groups: &str) -> Option<u64> {
        let root = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        limit_of(root.path(), groups)
    }

    #[test]
    fn the_second_version_says_max_or_a_number() {
        assert_eq!(with(&[("memory.max", "268435456\n")], "0::/\n"), Some(268_435_456));
        assert_eq!(with(&[("memory.max", "max\n")], "0::/\n"), None);
    }

    #[test]
    fn the_smallest_limit_above_a_process_counts() {
        let files = [("a/b/memory.max", "max"), ("a/memory.max", "500"), ("memory.max", "900")];
        assert_eq!(with(&files, "0::/a/b\n"), Some(500));
    }

    #[test]
    fn the_first_version_has_a_folder_for_memory_and_a_number_for_none() {
        let groups = "5:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/\n";
        let inside_a_container = [("memory/memory.limit_in_bytes", "1000\n")];
        assert_eq!(with(&inside_a_container, groups), Some(1000));
        assert_eq!(with(&[("memory/memory.limit_in_bytes", "9223372036854771712\n")], groups), None);
    }

    #[test]
    fn without_control_groups_there_is_no_limit() {
        assert_eq!(with(&[], ""), None);
    }
}
