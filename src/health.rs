//! `ottla health`: asks the node that this configuration describes whether it answers, as a client would.
//!
//! It is what containers run to see whether they are well, so it is one ApiVersions request, takes milliseconds and says
//! the answer by its exit code.
//!
//! ```text
//! request    length i32 = 10 | api key i16 = 18 | version i16 = 0 | correlation id i32 | client id i16 = -1 (null)
//! response   length i32      | correlation id i32 | error code i16 | …
//! ```

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::config::{Address, Config, Listener};

const PATIENCE: Duration = Duration::from_secs(3);
const CORRELATION_ID: i32 = 0x0771a;

/// Why the node is not well.
#[derive(Debug, thiserror::Error)]
pub enum HealthError {
    /// Nobody answers.
    #[error("no answer from {address}: {error}; is a node running, with this configuration?")]
    NoAnswer {
        /// Who was asked.
        address: Address,
        /// What came instead.
        error: io::Error,
    },
    /// Somebody listens and does not answer.
    #[error("no answer from {address} within {} s; its log says why, if it is a node", PATIENCE.as_secs())]
    Late {
        /// Who was asked.
        address: Address,
    },
    /// Something answers that is not a broker, or one in trouble.
    #[error("{address} answers ApiVersions with error code {code}")]
    Refused {
        /// Who was asked.
        address: Address,
        /// What it answered.
        code: i16,
    },
}

/// Asks the first listener, of those for clients if there are any; gives back its address.
///
/// # Errors
/// There was no good answer within three seconds.
pub fn check(config: &Config) -> Result<Address, HealthError> {
    let for_clients = |listener: &&Listener| listener.advertised.is_some();
    // A controller alone has only listeners for controllers.
    let listener = config.listeners.iter().find(for_clients).or(config.listeners.first());
    let listener = listener.expect("a configuration has a listener");
    let address = from_here(&listener.bind);
    match ask(&address) {
        Ok(0) => Ok(address),
        Ok(code) => Err(HealthError::Refused { address, code }),
        Err(error) => Err(no_answer(address, error)),
    }
}

fn no_answer(address: Address, error: io::Error) -> HealthError {
    match error.kind() {
        // A read that takes too long is EAGAIN.
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => HealthError::Late { address },
        _ => HealthError::NoAnswer { address, error },
    }
}

/// A node that listens at every address is asked at this machine's own.
fn from_here(bind: &Address) -> Address {
    let every = matches!(bind.host.as_str(), "" | "0.0.0.0" | "::");
    Address { host: if every { "127.0.0.1".to_owned() } else { bind.host.clone() }, port: bind.port }
}

/// The error code of the answer.
fn ask(address: &Address) -> io::Result<i16> {
    let mut stream = connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&request())?;
    let mut head = [0; 10];
    stream.read_exact(&mut head)?;
    let [_, _, _, _, c0, c1, c2, c3, e0, e1] = head;
    if i32::from_be_bytes([c0, c1, c2, c3]) != CORRELATION_ID {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the answer is not Kafka's"));
    }
    Ok(i16::from_be_bytes([e0, e1]))
}

fn connect(address: &Address) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for each in (address.host.as_str(), address.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&each, PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn request() -> Vec<u8> {
    let mut frame = Vec::with_capacity(14);
    frame.extend(10_i32.to_be_bytes());
    frame.extend(18_i16.to_be_bytes());
    frame.extend(0_i16.to_be_bytes());
    frame.extend(CORRELATION_ID.to_be_bytes());
    frame.extend((-1_i16).to_be_bytes());
    frame
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Answers one connection with these bytes, and checks what it was asked.
    fn answered_with(answer: Vec<u8>) -> io::Result<i16> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let (mut stream, _) = listener.accept().expect("a connection");
                let mut asked = [0; 14];
                stream.read_exact(&mut asked).expect("a request");
                assert_eq!(asked[..8], [0, 0, 0, 10, 0, 18, 0, 0]);
                stream.write_all(&answer).expect("an open connection");
            });
            ask(&Address { host: "127.0.0.1".to_owned(), port })
        })
    }

    fn answer(correlation_id: i32, error_code: i16) -> Vec<u8> {
        [&6_i32.to_be_bytes()[..], &correlation_id.to_be_bytes(), &error_code.to_be_bytes()].concat()
    }

    #[test]
    fn the_error_code_of_the_answer_counts() {
        assert_eq!(answered_with(answer(CORRELATION_ID, 0)).ok(), Some(0));
        assert_eq!(answered_with(answer(CORRELATION_ID, 35)).ok(), Some(35));
    }

    #[test]
    fn an_answer_that_is_not_kafkas_is_none() {
        assert!(answered_with(b"HTTP/1.1 400 Bad Request".to_vec()).is_err());
        assert!(answered_with(Vec::new()).is_err());
    }

    #[test]
    fn a_node_that_hangs_is_said_to_be_late() {
        let address = Address { host: "a".to_owned(), port: 1 };
        let why = no_answer(address, io::ErrorKind::WouldBlock.into()).to_string();
        assert!(why.starts_with("no answer from a:1 within 3 s"), "{why}");
    }

    #[test]
    fn a_node_at_every_address_is_asked_at_this_machines() {
        let every = Address { host: String::new(), port: 9092 };
        assert_eq!(from_here(&every).to_string(), "127.0.0.1:9092");
    }
}
