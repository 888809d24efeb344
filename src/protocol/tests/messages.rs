//! Every API at every version: what is encoded passes the preflight and is decoded to the last byte, and whatever else
//! comes is refused with an error.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "../../../protocol-tests/fuzz/mutate.rs"]
mod mutate;

use std::fmt::Debug;

use bytes::{Bytes, BytesMut};
use common::random_message;
use fastrand::Rng;
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Message, Request};
use mutate::mutate;
use proptest::prelude::*;
use protocol::messages::*;
use protocol::schema::{ApiSpec, Schema, Versions};
use protocol::tables::{APIS, api};
use protocol::{check, decode, decode_response};

/// Calls `$visit::<Request>(seed)` for every API.
macro_rules! for_each {
    ($visit:ident, $seed:expr) => {{
        macro_rules! each {
            ($key:literal, $request:ident, $response:ident) => {
                $visit::<$request>($seed);
            };
        }
        protocol::for_each_api!(each);
    }};
}

trait Comparable: Encodable + Decodable + Message + HeaderVersion + Default + PartialEq + Debug {}
impl<M: Encodable + Decodable + Message + HeaderVersion + Default + PartialEq + Debug> Comparable for M {}

fn spec<R: Request>() -> &'static ApiSpec {
    api(R::KEY).unwrap()
}

fn versions(api: &ApiSpec) -> impl Iterator<Item = i16> + use<> {
    let Versions { min, max } = api.stable_versions();
    min..=max
}

fn encode<M: Encodable>(message: &M, version: i16) -> Bytes {
    let mut bytes = BytesMut::new();
    message.encode(&mut bytes, version).unwrap();
    assert_eq!(bytes.len(), message.compute_size(version).unwrap());
    bytes.freeze()
}

fn whole<M: Comparable>(schema: &Schema, version: i16, bytes: &Bytes) -> M {
    let context = || format!("{} version {version}: {bytes:x?}", schema.name);
    check(schema, version, bytes).unwrap_or_else(|e| panic!("{e}: {}", context()));
    let mut left = bytes.clone();
    let message = M::decode(&mut left, version).unwrap_or_else(|e| panic!("{e}: {}", context()));
    assert!(left.is_empty(), "{}", context());
    message
}

fn structs_cover_every_stable_version<R: Request>(_: u64)
where
    R::Response: Message,
{
    let api = spec::<R>();
    let Versions { min, max } = api.stable_versions();
    for (what, found) in [("request", R::VERSIONS), ("response", R::Response::VERSIONS)] {
        assert!(found.min <= min && found.max >= max, "{} {what}: {found}, not {min}-{max}", api.name);
    }
}

fn headers_agree<R: Request>(_: u64) {
    let api = spec::<R>();
    for version in versions(api) {
        assert_eq!(R::header_version(version), api.request_header_version(version), "{}", api.name);
        assert_eq!(
            R::Response::header_version(version),
            api.response_header_version(version),
            "{}",
            api.name
        );
    }
}

fn defaults_pass<R: Request + Comparable>(_: u64)
where
    R::Response: Comparable,
{
    let api = spec::<R>();
    for version in versions(api) {
        let request = encode(&R::default(), version);
        whole::<R>(api.request, version, &request);
        assert!(decode::<R>(version, request).is_ok());
        let response = encode(&R::Response::default(), version);
        whole::<R::Response>(api.response, version, &response);
        assert!(decode_response::<R>(version, response).is_ok());
    }
}

fn random_values_come_back<R: Request + Comparable>(seed: u64)
where
    R::Response: Comparable,
{
    let api = spec::<R>();
    let mut random = Rng::with_seed(seed ^ R::KEY as u64);
    for version in versions(api) {
        comes_back::<R>(api.request, version, &mut random);
        comes_back::<R::Response>(api.response, version, &mut random);
    }
}

fn comes_back<M: Comparable>(schema: &'static Schema, version: i16, random: &mut Rng) {
    let bytes = Bytes::from(random_message(schema, version, random));
    let message = whole::<M>(schema, version, &bytes);
    let again = encode(&message, version);
    assert_eq!(whole::<M>(schema, version, &again), message, "{} version {version}", schema.name);
    for end in 0..bytes.len() {
        assert!(check(schema, version, &bytes[..end]).is_err(), "{} {version} cut at {end}", schema.name);
    }
    assert!(check(schema, version, &[&bytes[..], &[0]].concat()).is_err());
}

fn mutants_are_decoded_or_refused<R: Request>(seed: u64) {
    let api = spec::<R>();
    let mut random = Rng::with_seed(seed ^ R::KEY as u64);
    for version in versions(api) {
        let mut request = random_message(api.request, version, &mut random);
        mutate(&mut request, &mut random);
        let _ = decode::<R>(version, request.into());
        let mut response = random_message(api.response, version, &mut random);
        mutate(&mut response, &mut random);
        let _ = decode_response::<R>(version, response.into());
    }
}

#[test]
fn every_struct_covers_the_stable_versions_of_kafka() {
    for_each!(structs_cover_every_stable_version, 0);
}

#[test]
fn header_versions_are_those_of_the_structs() {
    for_each!(headers_agree, 0);
}

#[test]
fn every_default_passes_at_every_version() {
    for_each!(defaults_pass, 0);
}

#[test]
fn the_list_is_sorted_and_knows_every_live_api_of_kafka() {
    let keys: Vec<i16> = APIS.iter().map(|api| api.key).collect();
    assert_eq!(keys, (0..=94).filter(|key| !(4..=7).contains(key)).collect::<Vec<i16>>());
    assert!(APIS.iter().filter(|api| api.latest_unstable).map(|api| api.key).eq([22]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn random_values_of_every_message_come_back(seed: u64) {
        for_each!(random_values_come_back, seed);
    }

    #[test]
    fn mutants_of_every_message_are_decoded_or_refused(seed: u64) {
        for_each!(mutants_are_decoded_or_refused, seed);
    }
}
