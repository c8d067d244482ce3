//! What Prometheus reads of a broker.

mod served;

use dyno_serve::Registry;
use served::{client, fetch, new_producer, produce_of, produced, served, topic_is};

#[test]
fn topics_groups_and_queues_are_shown_with_what_they_hold_and_times_in_seconds() {
    let Some(served) = served("metrics") else {
        return;
    };
    let topic_id = served.topic("orders", 2);
    let mut sql = served.connection();
    let made = "SELECT pubsub.create_queue('mail'); SELECT pubsub.queue_send('mail', 'a'), \
                pubsub.queue_send('mail', 'b'); SELECT pubsub.join_group('orders', 'g', 'm', 10000, 'earliest')";
    // Its worker does not come back, and no other one claims anything after it.
    let abandoned = "SELECT pubsub.create_queue('idle', max_attempts => 1); \
                     SELECT pubsub.queue_send('idle', 'a'), pubsub.queue_send('idle', 'b'); \
                     SELECT pubsub.queue_claim('idle', 1, 1)";
    sql.client()
        .batch_execute(made)
        .expect("a queue and a group");
    sql.client()
        .batch_execute(abandoned)
        .expect("a queue with a dead letter");
    let broker = served.broker("s", 2);
    let client = client(&broker);
    let id = new_producer(&client);
    produced(
        &client,
        &produce_of(topic_id, 0, id, 0, &[b"a", b"b", b"c"]),
    );
    fetch(&client, topic_id, 0, 0, 0).expect("rows");
    topic_is(&client, "orders");
    let registry = Registry::new();
    broker.show(&registry).expect("free names");
    let text = registry.text();
    for line in [
        "dyno_pubsub_topic_records{topic=\"orders\"} 3",
        "dyno_pubsub_queue_messages{queue=\"mail\"} 2",
        "dyno_pubsub_queue_dead_messages{queue=\"mail\"} 0",
        "dyno_pubsub_queue_messages{queue=\"idle\"} 1",
        "dyno_pubsub_queue_dead_messages{queue=\"idle\"} 1",
        "dyno_pubsub_open_connections 1",
        "dyno_pubsub_unadmitted_connections 0",
        "dyno_pubsub_refused_connections_total 0",
        "dyno_pubsub_slow_connections_total 0",
        "# TYPE dyno_pubsub_append_wait_seconds_total counter",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    // How much of it is the group's depends on when it got its partitions.
    let lag = "dyno_pubsub_group_lag_records{group=\"g\",topic=\"orders\"} ";
    assert!(text.contains(lag), "{text}");
    assert!(!text.contains("_us_total"), "{text}");
}
