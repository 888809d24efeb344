//! Huge pages of memory.

use std::io;

/// Whether memory that this process touches for the first time from now on may come in huge pages, where the system gives them.
///
/// The kernel zeroes 2 MiB at the first touch. For a start, which touches little here and there, that is most of its work and
/// of the memory that it leaves behind; under load it pays.
///
/// # Errors
/// The system's.
pub fn allow_huge_pages(are_allowed: bool) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::thread::disable_transparent_huge_pages(!are_allowed)?;
    #[cfg(not(target_os = "linux"))]
    let _ = are_allowed;
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn they_are_allowed_and_forbidden_again() {
        for are_allowed in [false, true] {
            allow_huge_pages(are_allowed).unwrap();
            assert_eq!(rustix::thread::transparent_huge_pages_are_disabled().unwrap(), !are_allowed);
        }
    }
}
