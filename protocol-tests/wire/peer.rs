//! One connection to a broker that is opened anew whenever the broker closed it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use protocol::tables::api;

use crate::value::{Value, decode, encode};

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Longer than the session of any member here, for a JoinGroup waits for members that do not come back.
const ANSWER_WITHIN: Duration = Duration::from_secs(12);
/// No answer of these tests comes near it.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// What became of a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// A response that its table can read.
    Answer(Value),
    /// A response that it cannot.
    Unreadable(String),
    /// The connection was closed.
    Closed,
    /// Nothing came.
    Silence,
}

/// A broker and the connection to it.
pub(crate) struct Peer {
    /// How reports call it.
    pub(crate) name: &'static str,
    address: SocketAddr,
    connection: Option<TcpStream>,
    correlation_id: i32,
}

impl Peer {
    /// A broker; connected with the first request.
    pub(crate) fn new(name: &'static str, address: SocketAddr) -> Self {
        Self { name, address, connection: None, correlation_id: 0 }
    }

    /// Sends a request and waits for what becomes of it. `cut` takes bytes off the body's end, or adds zeros if negative.
    ///
    /// # Errors
    /// Where no connection can be made.
    pub(crate) fn ask(&mut self, key: i16, version: i16, request: &Value, cut: i32) -> io::Result<Outcome> {
        let api = api(key).expect("a key of the table");
        let mut body = encode(api.request, version, request);
        let length = body.len() as i64 - i64::from(cut);
        body.resize(length.max(0) as usize, 0);
        self.correlation_id += 1;
        let frame = frame(key, version, self.correlation_id, api.request_header_version(version), &body);
        let answer = match self.exchange(&frame, !is_unanswered(key, request)) {
            Ok(Some(answer)) => answer,
            Ok(None) => return Ok(Outcome::Silence),
            Err(error) => {
                self.connection = None;
                return ended(error);
            }
        };
        let header = 4 + usize::from(api.response_header_version(version) == 1);
        let id = answer.get(..4).map(|id| i32::from_be_bytes(id.try_into().unwrap_or_default()));
        if id != Some(self.correlation_id) || answer.len() < header {
            self.connection = None;
            return Ok(Outcome::Unreadable(format!("correlation id {id:?}")));
        }
        Ok(decode(api.response, version, &answer[header..]).map_or_else(Outcome::Unreadable, Outcome::Answer))
    }

    fn exchange(&mut self, frame: &[u8], answered: bool) -> io::Result<Option<Vec<u8>>> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(connect(self.address)?),
        };
        connection.write_all(frame)?;
        if answered { read_frame(connection).map(Some) } else { Ok(None) }
    }
}

/// Whether the broker keeps silent: Produce with acks=0.
fn is_unanswered(key: i16, request: &Value) -> bool {
    key == 0 && request.get("Acks") == Some(&Value::Int(0))
}

fn ended(error: io::Error) -> io::Result<Outcome> {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Ok(Outcome::Silence),
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Ok(Outcome::Closed),
        _ => Err(error),
    }
}

/// Opens a connection with time limits.
///
/// # Errors
/// Where the broker does not accept it.
pub(crate) fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let connection = TcpStream::connect_timeout(&address, CONNECT_WITHIN)?;
    connection.set_read_timeout(Some(ANSWER_WITHIN))?;
    connection.set_write_timeout(Some(ANSWER_WITHIN))?;
    connection.set_nodelay(true)?;
    Ok(connection)
}

/// A whole request frame from a client called `wire`.
pub(crate) fn frame(
    key: i16,
    version: i16,
    correlation_id: i32,
    header_version: i16,
    body: &[u8],
) -> Vec<u8> {
    let mut frame = vec![0; 4];
    frame.extend(key.to_be_bytes());
    frame.extend(version.to_be_bytes());
    frame.extend(correlation_id.to_be_bytes());
    frame.extend([0, 4]);
    frame.extend(b"wire");
    if header_version == 2 {
        frame.push(0);
    }
    frame.extend(body);
    let length = frame.len() as i32 - 4;
    frame[..4].copy_from_slice(&length.to_be_bytes());
    frame
}

/// Reads a response frame without its length.
///
/// # Errors
/// Where the connection ends first or says a length that cannot be.
pub(crate) fn read_frame(connection: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    connection.read_exact(&mut length)?;
    let length = i32::from_be_bytes(length);
    let size = usize::try_from(length).ok().filter(|size| *size <= ANSWER_BYTES_MAX);
    let mut frame = vec![0; size.ok_or_else(|| io::Error::other(format!("a response of {length} bytes")))?];
    connection.read_exact(&mut frame)?;
    Ok(frame)
}
