//! Clients of Kafka: processes of Python over librdkafka, which share no line of code with us. They
//! get the same jobs and write the same events as our own.

use std::fs;
use std::io;
use std::path::Path;

/// The client, for an interpreter that has the package confluent-kafka.
pub const SCRIPT: &str = include_str!("kafka_client.py");

/// Writes the script into `dir`, and returns the program that runs it, without the job.
pub fn program(python: &Path, dir: &Path) -> io::Result<Vec<String>> {
    let script = dir.join("kafka_client.py");
    fs::write(&script, SCRIPT)?;
    Ok([python, &script]
        .map(|path| path.display().to_string())
        .into())
}
