//! What a node answers that has no cluster yet: who it is, to the others that it forms one with.

use std::sync::Arc;

use bytes::Bytes;
use cluster::Newcomer;
use protocol::Request;
use protocol::messages::{ApiVersionsRequest, ApiVersionsResponse, DescribeClusterRequest};

use crate::adapter::{decode, outcome};
use crate::{CloseReason, Outcome, Reply, Row, TABLE, api_versions};

/// The APIs of a node without a cluster.
pub struct Forming {
    newcomer: Arc<Newcomer>,
}

impl Forming {
    /// For the node that forms a cluster.
    pub fn new(newcomer: Arc<Newcomer>) -> Self {
        Self { newcomer }
    }

    /// Handles one request.
    pub fn answer(&self, mut frame: Bytes) -> Outcome {
        let header = match protocol::decode_request_header(&mut frame) {
            Ok(header) => header,
            Err(cause) => return Outcome::Close(CloseReason::Header(cause)),
        };
        let (api_key, api_version) = (header.api_key, header.api_version);
        match served(api_key) {
            Some(row) if !row.serves(api_version) && api_key == api_versions::KEY => {
                api_versions::unsupported(&header)
            }
            Some(row) if row.serves(api_version) && api_key == api_versions::KEY => {
                match decode::<ApiVersionsRequest>(&header, frame) {
                    Ok(_) => outcome(header, Reply::Now(api_versions())),
                    Err(close) => close,
                }
            }
            Some(row) if row.serves(api_version) => match decode::<DescribeClusterRequest>(&header, frame) {
                Ok(request) => outcome(header, Reply::Now(self.newcomer.introduce(&request))),
                Err(close) => close,
            },
            _ => Outcome::Close(CloseReason::Unsupported { api_key, api_version }),
        }
    }
}

fn served(api_key: i16) -> Option<&'static Row> {
    let keys = [api_versions::KEY, DescribeClusterRequest::KEY];
    TABLE.iter().find(|row| row.key == api_key && keys.contains(&row.key))
}

fn api_versions() -> ApiVersionsResponse {
    let rows = TABLE.iter().filter(|row| served(row.key).is_some());
    ApiVersionsResponse::default().with_api_keys(rows.map(api_versions::api_version).collect())
}
