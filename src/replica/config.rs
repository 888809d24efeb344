//! What a broker's configuration says to the machine.

use std::time::Duration;

/// Times of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// `replica.lag.time.max.ms`: who has not had all of the leader's log for so long is out of sync.
    pub replica_lag_time_max: Duration,
    /// `replica.fetch.backoff.ms`: the pause after a fetch that failed.
    pub fetch_backoff: Duration,
    /// The pause, if it is shorter, after a fetch from a leader that does not know yet that it leads.
    pub news_backoff: Duration,
    /// The pause after an AlterPartition that failed or was refused.
    pub alter_partition_backoff: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            replica_lag_time_max: Duration::from_secs(30),
            fetch_backoff: Duration::from_millis(100),
            news_backoff: Duration::from_millis(20),
            alter_partition_backoff: Duration::from_millis(50),
        }
    }
}
