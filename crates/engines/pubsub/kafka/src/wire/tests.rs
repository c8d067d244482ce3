//! Our messages against those of the crate `kafka-protocol`: what we write it reads, and writes
//! again as the same bytes.

use bytes::{Bytes, BytesMut};
use dyno_random::Random;
use kafka_protocol::messages as theirs;
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion};

use super::*;

/// A value with something in every field.
pub trait Sample {
    fn sample(random: &mut Random) -> Self;
}

macro_rules! number {
    ($($kind:ty),*) => {
        $(impl Sample for $kind {
            fn sample(random: &mut Random) -> Self {
                random.bits() as $kind
            }
        })*
    };
}

number!(i8, i16, i32, i64);

impl Sample for bool {
    fn sample(random: &mut Random) -> Self {
        random.one_in(2)
    }
}

impl Sample for String {
    fn sample(random: &mut Random) -> Self {
        // Longer than a varint of one byte can say, at times.
        let length = if random.one_in(4) {
            200
        } else {
            random.below(12)
        };
        (0..length)
            .map(|_| char::from(b'a' + random.below(26) as u8))
            .collect()
    }
}

impl Sample for Bytes {
    fn sample(random: &mut Random) -> Self {
        let mut bytes = vec![0; random.below(300)];
        random.fill(&mut bytes);
        bytes.into()
    }
}

impl<T: Sample> Sample for Vec<T> {
    fn sample(random: &mut Random) -> Self {
        (0..random.below(4)).map(|_| T::sample(random)).collect()
    }
}

impl Sample for Option<String> {
    fn sample(random: &mut Random) -> Self {
        random.one_in(2).then(|| String::sample(random))
    }
}

impl Sample for Option<Bytes> {
    fn sample(random: &mut Random) -> Self {
        random.one_in(2).then(|| Bytes::sample(random))
    }
}

impl<T: Sample> Sample for Option<Vec<T>> {
    fn sample(random: &mut Random) -> Self {
        // Null is not allowed in every version that has the field.
        Some(Vec::sample(random))
    }
}

/// Writes a sample of ours in every version, and compares.
fn compare<R, Q, S>(name: &str)
where
    R: Request + Sample,
    R::Response: Sample,
    Q: Decodable + Encodable + HeaderVersion,
    S: Decodable + Encodable + HeaderVersion,
{
    let mut random = Random::new(1);
    for version in R::API.first..=R::API.last {
        let flexible = version >= R::API.flexible_since;
        assert_eq!(
            Q::header_version(version) == 2,
            flexible,
            "{name} {version}"
        );
        for _ in 0..50 {
            let request = written(&R::sample(&mut random), version, flexible);
            assert_eq!(
                again::<Q>(&request, version, name),
                request,
                "{name} request {version}"
            );
            let mut reader = Reader::new(request.clone(), version, flexible);
            let read = R::read(&mut reader).unwrap();
            assert!(reader.into_rest().is_empty(), "{name} request {version}");
            assert_eq!(
                written(&read, version, flexible),
                request,
                "{name} request {version}"
            );
            let response = written(&R::Response::sample(&mut random), version, flexible);
            assert_eq!(
                again::<S>(&response, version, name),
                response,
                "{name} response {version}"
            );
        }
    }
}

fn written(message: &impl Field, version: i16, flexible: bool) -> Bytes {
    let mut writer = Writer::new(version, flexible);
    message.write(&mut writer);
    writer.into_parts().concat().into()
}

fn again<M: Decodable + Encodable>(bytes: &Bytes, version: i16, name: &str) -> Bytes {
    let mut rest = bytes.clone();
    let message = M::decode(&mut rest, version);
    let message = message.unwrap_or_else(|error| panic!("{name} {version}: {error}"));
    assert!(
        rest.is_empty(),
        "{name} {version}: {} bytes left",
        rest.len()
    );
    let mut again = BytesMut::new();
    message.encode(&mut again, version).unwrap();
    again.freeze()
}

macro_rules! compare_all {
    ($($request:ident $response:ident;)*) => {
        $(compare::<$request, theirs::$request, theirs::$response>(stringify!($request));)*
    };
}

#[test]
fn every_message_has_the_layout_that_another_implementation_has() {
    compare_all! {
        ProduceRequest ProduceResponse;
        FetchRequest FetchResponse;
        ListOffsetsRequest ListOffsetsResponse;
        MetadataRequest MetadataResponse;
        OffsetCommitRequest OffsetCommitResponse;
        OffsetFetchRequest OffsetFetchResponse;
        FindCoordinatorRequest FindCoordinatorResponse;
        JoinGroupRequest JoinGroupResponse;
        HeartbeatRequest HeartbeatResponse;
        LeaveGroupRequest LeaveGroupResponse;
        SyncGroupRequest SyncGroupResponse;
        DescribeGroupsRequest DescribeGroupsResponse;
        ListGroupsRequest ListGroupsResponse;
        SaslHandshakeRequest SaslHandshakeResponse;
        ApiVersionsRequest ApiVersionsResponse;
        CreateTopicsRequest CreateTopicsResponse;
        DeleteTopicsRequest DeleteTopicsResponse;
        DeleteRecordsRequest DeleteRecordsResponse;
        InitProducerIdRequest InitProducerIdResponse;
        AddPartitionsToTxnRequest AddPartitionsToTxnResponse;
        AddOffsetsToTxnRequest AddOffsetsToTxnResponse;
        EndTxnRequest EndTxnResponse;
        TxnOffsetCommitRequest TxnOffsetCommitResponse;
        DescribeConfigsRequest DescribeConfigsResponse;
        AlterConfigsRequest AlterConfigsResponse;
        SaslAuthenticateRequest SaslAuthenticateResponse;
        CreatePartitionsRequest CreatePartitionsResponse;
        DeleteGroupsRequest DeleteGroupsResponse;
        IncrementalAlterConfigsRequest IncrementalAlterConfigsResponse;
        DescribeClusterRequest DescribeClusterResponse;
    }
}

#[test]
fn every_api_has_the_number_that_another_implementation_has() {
    for api in APIS {
        let theirs = theirs::ApiKey::try_from(api.key).unwrap();
        let flexible = (api.first..=api.last)
            .find(|version| theirs.request_header_version(*version) == 2)
            .unwrap_or(api.flexible_since);
        assert_eq!(flexible, api.flexible_since.max(api.first), "{theirs:?}");
        let range = theirs.valid_versions();
        assert!(
            range.min <= api.first && api.last <= range.max,
            "{theirs:?}"
        );
    }
}

/// Any bytes at all, and messages that are cut or changed in a place: an error or a message, but no
/// panic, and no memory for lengths that cannot be right.
#[test]
fn hostile_bytes_become_errors() {
    let mut random = Random::new(2);
    for _ in 0..20_000 {
        let version = 9;
        let request = written(&ProduceRequest::sample(&mut random), version, true);
        let mut bytes = request.to_vec();
        match random.below(3) {
            0 => bytes.truncate(random.below(bytes.len())),
            1 => {
                let at = random.below(bytes.len());
                bytes[at] = random.bits() as u8;
            }
            _ => random.fill(&mut bytes),
        }
        let mut reader = Reader::new(bytes.into(), version, true);
        let _ = ProduceRequest::read(&mut reader);
    }
    // An array of 2^31 - 1 elements in eight bytes.
    let mut reader = Reader::new(Bytes::from_static(b"\x7f\xff\xff\xff\0\0\0\0"), 4, false);
    let error = Vec::<i32>::read(&mut reader).unwrap_err();
    assert_eq!(error, WireError::Length(i64::from(i32::MAX)));
    let many = vec![0; 4 + 200_000];
    let mut reader = Reader::new(
        [&200_000_i32.to_be_bytes()[..], &many].concat().into(),
        4,
        false,
    );
    assert_eq!(
        Vec::<bool>::read(&mut reader).unwrap_err(),
        WireError::Elements
    );
}

#[test]
fn a_request_is_split_into_its_header_and_its_body() {
    let header = theirs::RequestHeader::default()
        .with_request_api_key(3)
        .with_request_api_version(9)
        .with_correlation_id(77)
        .with_client_id(Some("me".to_owned().into()));
    let mut frame = BytesMut::new();
    header.encode(&mut frame, 2).unwrap();
    frame.extend_from_slice(b"rest");
    let (read, body) = Header::read(frame.freeze()).unwrap();
    assert_eq!((read.key, read.version, read.correlation_id), (3, 9, 77));
    assert_eq!(read.client_id.as_deref(), Some("me"));
    assert_eq!(&body[..], b"rest");
    assert_eq!(read.api(), Some(MetadataRequest::API));
}
