//! A connection that speaks frames, and the few requests that a benchmark needs.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Context, Result};
use bytes::Bytes;
use protocol::{Encodable, Request, RequestHeader, StrBytes, decode_response, encode_request};

/// Where the correlation id stands in a request frame, its length included.
const CORRELATION_ID_AT: usize = 8;

/// A blocking connection to a broker.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(port: u16) -> Result<Self> {
        Self::over(TcpStream::connect(("127.0.0.1", port))?)
    }

    pub(crate) fn over(stream: TcpStream) -> Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    /// The same connection for a second thread.
    pub(crate) fn split(&self) -> Result<Self> {
        Ok(Self { stream: self.stream.try_clone()?, buffer: Vec::new() })
    }

    pub(crate) fn send(&mut self, frame: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(frame)?)
    }

    /// The next response, from its correlation id on.
    pub(crate) fn receive(&mut self) -> Result<&[u8]> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).context("the broker closed the connection")?;
        let length = usize::try_from(i32::from_be_bytes(length))?;
        if self.buffer.len() < length {
            self.buffer.resize(length, 0);
        }
        let body = &mut self.buffer[..length];
        self.stream.read_exact(body)?;
        Ok(body)
    }

    /// One request and its response.
    pub(crate) fn call<R: Request + Encodable>(&mut self, version: i16, request: &R) -> Result<R::Response> {
        let frame = frame(version, request)?;
        self.send(&frame)?;
        let header_bytes = header_bytes::<R>(version);
        let response = self.receive()?;
        Ok(decode_response::<R>(version, Bytes::copy_from_slice(&response[header_bytes..]))?)
    }
}

/// A request with its length and header; its correlation id is 0.
pub(crate) fn frame<R: Request + Encodable>(version: i16, request: &R) -> Result<Vec<u8>> {
    let header = RequestHeader {
        api_key: R::KEY,
        api_version: version,
        correlation_id: 0,
        client_id: Some(StrBytes::from_static_str("bench")),
    };
    Ok(encode_request(&header, request)?.to_vec())
}

pub(crate) fn set_correlation_id(frame: &mut [u8], id: i32) {
    frame[CORRELATION_ID_AT..CORRELATION_ID_AT + 4].copy_from_slice(&id.to_be_bytes());
}

/// Bytes of a response's header, its correlation id included.
pub(crate) fn header_bytes<R: Request>(version: i16) -> usize {
    let flexible = protocol::tables::api(R::KEY).is_some_and(|api| api.response_header_version(version) == 1);
    if flexible { 5 } else { 4 }
}
