//! How much memory decoding a message takes: a small multiple of its bytes, whatever they say.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "../../../protocol-tests/fuzz/mutate.rs"]
mod mutate;

use std::alloc::System;

use bytes::Bytes;
use common::random_message;
use fastrand::Rng;
use kafka_protocol::protocol::Request;
use model::Limits;
use mutate::mutate;
use protocol::messages::*;
use protocol::schema::{Field, Kind, Schema};
use protocol::tables::api;
use protocol::{PreflightError, check, check_request, decode, decode_response};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The dearest element is some hundred bytes in memory and a byte or two on the wire; `Limits::MESSAGE_ELEMENTS_MAX` bounds the sum.
const MULTIPLE_MAX: usize = 40;
/// Errors carry a backtrace where one is asked for.
const FIXED_BYTES: usize = 64 << 10;

// The counters are the process's, so the tests of this file are one.
#[test]
fn memory_is_bounded_by_the_frame() {
    hostile_lengths_allocate_nothing();
    elements_are_counted();
    let mut random = Rng::with_seed(7);
    for _ in 0..3 {
        macro_rules! each {
            ($key:literal, $request:ident, $response:ident) => {
                mutants::<$request>(&mut random);
            };
        }
        protocol::for_each_api!(each);
    }
    macro_rules! each {
        ($key:literal, $request:ident, $response:ident) => {
            dense_messages::<$request>();
        };
    }
    protocol::for_each_api!(each);
}

fn allocated(work: impl FnOnce()) -> usize {
    let region = Region::new(ALLOCATOR);
    work();
    region.change().bytes_allocated
}

fn hostile_lengths_allocate_nothing() {
    const HUGE_COMPACT: [u8; 5] = [0xff, 0xff, 0xff, 0xff, 0x0f];
    let metadata_9 = [&HUGE_COMPACT[..], &[1, 0, 0, 0]].concat();
    let metadata_1 = [0x7f, 0xff, 0xff, 0xff, 0, 0].to_vec();
    let produce_9 = [&[0, 0xff, 0xff, 0, 0, 0, 1], &HUGE_COMPACT[..], &[0]].concat();
    let fetch_4 = [[0xff; 4], [0; 4], [0; 4], [0; 4], [0, 0x7f, 0xff, 0xff], [0xff, 0, 0, 0]].concat();
    for (key, version, body) in [(3, 9, metadata_9), (3, 1, metadata_1), (0, 9, produce_9), (1, 4, fetch_4)] {
        let body = Bytes::from(body);
        let taken = allocated(|| {
            assert_eq!(check_request(key, version, &body), Err(PreflightError::Length), "{key} {version}");
        });
        assert_eq!(taken, 0);
    }
}

fn elements_are_counted() {
    let topics = Limits::MESSAGE_ELEMENTS_MAX + 1;
    let mut body = (topics as i32).to_be_bytes().to_vec();
    body.resize(4 + 2 * topics, 0);
    let taken = allocated(|| {
        assert_eq!(check_request(3, 1, &body), Err(PreflightError::TooMany));
    });
    assert_eq!(taken, 0);
}

fn mutants<R: Request>(random: &mut Rng) {
    let api = api(R::KEY).unwrap();
    let versions = api.stable_versions();
    for version in versions.min..=versions.max {
        for (schema, is_request) in [(api.request, true), (api.response, false)] {
            let mut bytes = random_message(schema, version, random);
            mutate(&mut bytes, random);
            bounded::<R>(schema, version, bytes, is_request);
        }
    }
}

/// Messages whose every array in turn is as full as a frame allows.
fn dense_messages<R: Request>() {
    let api = api(R::KEY).unwrap();
    let version = api.stable_versions().max;
    for (schema, is_request) in [(api.request, true), (api.response, false)] {
        for full in 0.. {
            let flexible = schema.flexible.contains(version);
            let mut dense = Dense { bytes: Vec::new(), version, flexible, full, arrays: 0, empty: false };
            dense.fields(schema.fields);
            if dense.arrays <= full {
                break;
            }
            assert_eq!(check(schema, version, &dense.bytes), Ok(()), "{}", schema.name);
            bounded::<R>(schema, version, dense.bytes, is_request);
        }
    }
}

fn bounded<R: Request>(schema: &Schema, version: i16, bytes: Vec<u8>, is_request: bool) {
    let bytes = Bytes::from(bytes);
    let size = bytes.len();
    let taken = allocated(|| {
        if is_request {
            drop(decode::<R>(version, bytes));
        } else {
            drop(decode_response::<R>(version, bytes));
        }
    });
    assert!(
        taken <= MULTIPLE_MAX * size + FIXED_BYTES,
        "{} version {version}: {taken} bytes for {size}",
        schema.name
    );
}

/// Writes the smallest message in which array number `full` has many elements.
struct Dense {
    bytes: Vec<u8>,
    version: i16,
    flexible: bool,
    full: usize,
    arrays: usize,
    empty: bool,
}

const ELEMENTS: usize = 10_000;

impl Dense {
    fn fields(&mut self, fields: &'static [Field]) {
        let version = self.version;
        for field in fields.iter().filter(|f| f.tag.is_none() && f.versions.contains(version)) {
            match field.kind {
                Kind::Struct(_) if field.is_nullable(version) => self.bytes.push(0xff),
                _ => self.value(&field.kind),
            }
        }
        if self.flexible {
            self.bytes.push(0);
        }
    }

    fn value(&mut self, kind: &'static Kind) {
        match kind {
            Kind::Struct(fields) => self.fields(fields),
            Kind::Array(element) => {
                let elements = self.elements();
                self.length(elements, false);
                (0..elements).for_each(|_| self.value(element));
                self.empty = self.empty && elements != ELEMENTS;
            }
            Kind::String => self.length(0, true),
            Kind::Bytes | Kind::Records => self.length(0, false),
            number => {
                let size = number.size_min(self.version, self.flexible);
                self.bytes.resize(self.bytes.len() + size, 0);
            }
        }
    }

    fn elements(&mut self) -> usize {
        if self.empty {
            return 0;
        }
        self.arrays += 1;
        if self.arrays != self.full + 1 {
            return 1;
        }
        self.empty = true;
        ELEMENTS
    }

    fn length(&mut self, length: usize, short: bool) {
        if self.flexible {
            let length = length + 1;
            if length >= 0x80 {
                self.bytes.push(length as u8 | 0x80);
            }
            self.bytes.push(if length < 0x80 { length as u8 } else { (length >> 7) as u8 });
        } else if short {
            self.bytes.extend((length as i16).to_be_bytes());
        } else {
            self.bytes.extend((length as i32).to_be_bytes());
        }
    }
}
