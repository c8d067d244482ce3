//! The messages that the model is sent.

use crate::Question;
use crate::endpoint::{Message, Role};

/// The table, and what an answer must look like. The bands are those that the loader computes from
/// frequencies.
const SYSTEM: &str = "\
You translate questions about a table of radio spots (WSPR: Weak Signal Propagation Reporter) into one SQL query for \
Apache DataFusion (PostgreSQL-like). Answer with the query alone, in a ```sql fence.

Table `spots`, one row for each time a receiver heard a transmitter:
  id UBIGINT               number of the spot
  timestamp TIMESTAMP      UTC, the beginning of a transmission, whole minutes
  reporter VARCHAR         call sign of the receiver
  reporter_grid VARCHAR    its Maidenhead locator, 4 or 6 characters, may be empty
  snr TINYINT              signal to noise, dB in 2500 Hz
  frequency UBIGINT        Hz
  callsign VARCHAR         call sign of the transmitter
  grid VARCHAR             its locator
  power TINYINT            dBm
  drift TINYINT            Hz a minute
  distance UINT            km
  azimuth USMALLINT        degrees, at the transmitter
  band INT                 100 2190m, 101 630m, 102 160m, 103 80m, 104 60m, 105 40m, 106 30m, 107 20m, 108 17m, \
109 15m, 110 12m, 111 10m, 200 6m, 201 4m, 202 2m, 203 1.25m, 300 70cm, 301 33cm, 302 23cm, 303 13cm
  mode VARCHAR, version VARCHAR, code UTINYINT (0: nothing suspect)

Rules: one SELECT (or WITH), nothing that writes. Give columns short names. For a ranking add ORDER BY and LIMIT 20. \
Put what is compared last in the select list. Regions are known by the first two characters of locators: Europe is \
IM to KP (first letter I, J or K; second M, N, O or P), Japan is PM, PN, QM, QN, North America is B to G with first \
letter and K to P, Australia is O to R with D to H.";

/// The conversation at its beginning.
pub(crate) fn opening(question: &Question<'_>) -> Vec<Message> {
    let about = match question.about {
        "" => String::new(),
        about => format!("\n\nThe table: {about}"),
    };
    vec![
        Message::new(Role::System, format!("{SYSTEM}{about}")),
        Message::new(Role::User, question.words),
    ]
}

/// The messages that follow a statement that could not be run.
pub(crate) fn mending(sql: &str, reason: &str) -> [Message; 2] {
    let statement = format!("```sql\n{sql}\n```");
    let correction = format!("That cannot be run: {reason}\nWrite it again, in a ```sql fence.");
    [
        Message::new(Role::Assistant, statement),
        Message::new(Role::User, correction),
    ]
}
