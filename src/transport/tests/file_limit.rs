//! At the limit of open files. Alone in its process, for it lowers the limit.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use env::{BoxFuture, Clock, Net};
use host::HostExec;
use model::{Instant, Timestamp};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpStream;
use transport::{TcpConfig, TcpNet};

/// Counts the waits; the third one raises the limit again.
struct Counting {
    waits: AtomicUsize,
    before: Rlimit,
}

impl Clock for Counting {
    fn now(&self) -> Instant {
        Instant(0)
    }
    fn wall(&self) -> Timestamp {
        Timestamp::NONE
    }
    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        assert!(at > Instant(0), "it would spin");
        if self.waits.fetch_add(1, Ordering::SeqCst) == 2 {
            setrlimit(Resource::Nofile, self.before).expect("it was allowed before");
        }
        Box::pin(std::future::ready(()))
    }
}

/// The number that the next opened file would get.
fn next_file() -> u64 {
    std::fs::File::open("/dev/null").expect("it is on every machine").as_raw_fd() as u64
}

#[tokio::test]
async fn at_the_limit_of_open_files_accept_waits_and_then_goes_on() {
    let before = getrlimit(Resource::Nofile);
    let clock = Arc::new(Counting { waits: AtomicUsize::new(0), before });
    let exec = Arc::new(HostExec::new(tokio::runtime::Handle::current(), 1));
    let net = TcpNet::new(Arc::clone(&clock) as Arc<dyn Clock>, exec, TcpConfig::default());
    let mut listener = net.listen("127.0.0.1:0", 100).await.unwrap();
    let _client = TcpStream::connect(listener.local()).await.unwrap();

    setrlimit(Resource::Nofile, Rlimit { current: Some(next_file()), ..before }).unwrap();
    listener.accept().await.unwrap();
    assert_eq!(clock.waits.load(Ordering::SeqCst), 3);
}
