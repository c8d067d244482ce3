//! Groups of Kafka's clients, as the functions in the database keep them.

use dyno_pubsub::{Error, Membership, Start, TopicOptions, WhenLost};

use super::server::Server;

const COMMIT: &str = "SELECT pubsub.kafka_commit($1, $2, ARRAY[$3::int], ARRAY[0], ARRAY[$4::bigint], ARRAY[''::bytea])";

#[test]
fn a_server_whose_lease_lapsed_stores_nothing_and_another_takes_its_groups() {
    let server = Server::shared();
    let (topic_id, _) = server.topic(&TopicOptions::default());
    let mut connection = server.connect();
    let mut enter = || -> i32 {
        let query = "SELECT pubsub.kafka_enter('localhost', 9092, 'unix:/nowhere', 60000)";
        connection.client().query_one(query, &[]).unwrap().get(0)
    };
    let (first, second) = (enter(), enter());
    let group = format!("group-{topic_id}");
    let mut coordinator = |asking: i32| -> i32 {
        let query = "SELECT pubsub.kafka_coordinator($1, $2)";
        connection
            .client()
            .query_one(query, &[&group, &asking])
            .unwrap()
            .get(0)
    };
    assert_eq!(coordinator(first), first);
    assert_eq!(coordinator(second), first);
    let mut client = server.connect();
    let mut commit = |node: i32, offset: i64| {
        let done = client
            .client()
            .execute(COMMIT, &[&group, &node, &topic_id, &offset]);
        done.map_err(Error::statement("commit"))
    };
    commit(first, 7).unwrap();
    assert_eq!(commit(second, 8).unwrap_err().code(), "wrong-generation");

    server
        .connect()
        .client()
        .execute("SELECT pubsub.kafka_leave($1)", &[&first])
        .unwrap();
    assert_eq!(commit(first, 9).unwrap_err().code(), "wrong-generation");
    assert_eq!(coordinator(second), second);
    commit(second, 10).unwrap();
    // The first one comes back, and is not the coordinator any more.
    let query = "SELECT pubsub.kafka_renew($1, 60000)";
    let was_held: bool = server
        .connect()
        .client()
        .query_one(query, &[&first])
        .unwrap()
        .get(0);
    assert!(!was_held);
    assert_eq!(commit(first, 11).unwrap_err().code(), "wrong-generation");
    assert_eq!(coordinator(first), second);
    let query = "SELECT committed FROM pubsub.kafka_offsets WHERE group_name = $1";
    let stored: i64 = server
        .connect()
        .client()
        .query_one(query, &[&group])
        .unwrap()
        .get(0);
    assert_eq!(stored, 10);
}

#[test]
fn a_name_belongs_to_one_kind_of_group() {
    let server = Server::shared();
    let (topic_id, topic) = server.topic(&TopicOptions::default());
    let mut connection = server.connect();
    let query = "SELECT pubsub.kafka_enter('localhost', 9092, 'unix:/nowhere', 60000)";
    let node: i32 = connection.client().query_one(query, &[]).unwrap().get(0);
    let (ours, theirs) = (format!("ours-{topic_id}"), format!("theirs-{topic_id}"));
    let membership = |group: &str| Membership {
        topic: topic.clone(),
        group: group.to_owned(),
        member: "m".to_owned(),
        lease_ms: 10_000,
        start: Start::Earliest,
        when_lost: WhenLost::Skip,
    };
    connection.join_group(&membership(&ours)).unwrap();
    let query = "SELECT pubsub.kafka_coordinator($1, $2)";
    let refused = connection.client().query_one(query, &[&ours, &node]);
    let error = refused.map_err(Error::statement("coordinate")).unwrap_err();
    assert!(
        error.code() == "name-taken" && error.text().contains(&topic),
        "{error}"
    );

    connection
        .client()
        .query_one(query, &[&theirs, &node])
        .unwrap();
    let error = connection.join_group(&membership(&theirs)).unwrap_err();
    assert!(
        error.code() == "name-taken" && error.text().contains("Kafka"),
        "{error}"
    );
}

#[test]
fn retention_keeps_what_a_group_of_kafka_has_not_read() {
    let server = Server::shared();
    let options = TopicOptions {
        range_records: 100,
        retention_ms: Some(1),
        retain_for_groups: true,
        ..TopicOptions::default()
    };
    let (topic_id, topic) = server.topic(&options);
    let mut connection = server.connect();
    let query = "SELECT pubsub.kafka_enter('localhost', 9092, 'unix:/nowhere', 60000)";
    let node: i32 = connection.client().query_one(query, &[]).unwrap().get(0);
    let group = format!("keeper-{topic_id}");
    let query = "SELECT pubsub.kafka_coordinator($1, $2)";
    connection
        .client()
        .query_one(query, &[&group, &node])
        .unwrap();
    let producer = connection.new_producer().unwrap();
    for turn in 0..5 {
        let values = vec![&b"x"[..]; 100];
        let mut batch = super::batch(producer, turn * 100, &values);
        connection.append(topic_id, 0, 0, &mut batch).unwrap();
    }
    let mut first_after = |committed: i64| -> i64 {
        connection
            .client()
            .execute(COMMIT, &[&group, &node, &topic_id, &committed])
            .unwrap();
        connection.maintain().unwrap();
        let query = "SELECT first_offset FROM pubsub.partitions WHERE topic_id = $1";
        connection
            .client()
            .query_one(query, &[&topic_id])
            .unwrap()
            .get(0)
    };
    assert_eq!(first_after(150), 100, "{topic}");
    assert_eq!(first_after(400), 400, "{topic}");
}
