//! Lines as the feeds' makers document them, not as our generators write them, with the values that
//! they mean.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(
    dead_code,
    reason = "the check against slow parsers is in agreement.rs"
)]
mod agree;

use std::collections::BTreeMap;

use dyno_ingest_feeds::named;

/// The rows of a text as (column, value) without the columns that have none.
fn rows(feed: &str, text: &str) -> Vec<BTreeMap<&'static str, String>> {
    let feed = named(feed).unwrap();
    agree::check(feed, text.as_bytes());
    let parsed = agree::read(feed, text.as_bytes());
    assert_eq!((parsed.bad, parsed.refused), (vec![], None), "{text}");
    let named = |row: agree::Row| {
        let cells = feed.rows.as_ref().unwrap().fields.iter().zip(row);
        cells
            .filter_map(|(field, cell)| Some((field.name, cell?)))
            .collect()
    };
    parsed.rows.into_iter().map(named).collect()
}

fn is(row: &BTreeMap<&str, String>, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        assert_eq!(
            row.get(name).map(String::as_str),
            Some(*value),
            "{name} of {row:?}"
        );
    }
}

#[test]
fn a_day_of_the_reverse_beacon_network_in_each_era() {
    let of_2009 = "DK9IP,DL,EU,14030.0,20m,F5XX,F,EU,CQ,20,2009-02-21 12:00:00\n";
    let of_2010 = "callsign,de_pfx,de_cont,freq,band,dx,dx_pfx,dx_cont,mode,db,date\n\
                   W3LPL,K,NA,7010.0,40m,JA1ZZZ,JA,AS,CQ,7,2010-06-16 21:10:00+00\n";
    let of_2025 = "callsign,de_pfx,de_cont,freq,band,dx,dx_pfx,dx_cont,mode,db,date,speed,tx_mode\n\
                   TI7W,TI,NA,7023.4,40m,TI8X,TI,NA,CQ,31,2025-11-29 00:00:36,33,CW\n\
                   K5TR,K,NA,21012.0,15m,N7ZG,K,NA,CQ,233,2025-11-29 00:01:00,29,CW\n\
                   (2 rows)\n";
    let row = &rows("rbn", of_2009)[0];
    is(
        row,
        &[
            ("timestamp", "1235217600000"),
            ("frequency", "14030000"),
            ("band", "107"),
            ("column_count", "11"),
        ],
    );
    assert!(!row.contains_key("speed") && !row.contains_key("tx_mode"));
    is(
        &rows("rbn", of_2010)[0],
        &[
            ("timestamp", "1276722600000"),
            ("spot_type", "CQ"),
            ("snr", "7"),
        ],
    );
    let rows = rows("rbn", of_2025);
    is(
        &rows[0],
        &[
            ("timestamp", "1764374436000"),
            ("de_call", "TI7W"),
            ("dx_call", "TI8X"),
            ("frequency", "7023400"),
            ("band_name", "40m"),
            ("speed", "33"),
            ("tx_mode", "CW"),
            ("column_count", "13"),
        ],
    );
    is(&rows[1], &[("snr", "233")]);
}

/// The example of the format's specification, version 3, with contacts as other contests have them.
const LOG: &str = "START-OF-LOG: 3.0\n\
               CALLSIGN: AA1ZZZ\n\
               CONTEST: CQ-WW-SSB\n\
               CATEGORY-OPERATOR: SINGLE-OP\n\
               SOAPBOX: Put your comments here.\n\
               QSO:  3799 PH 2000-10-26 0711 AA1ZZZ          59  05     K9QZO         59  04     0\n\
               QSO: 28530 PH 2000-10-26 0711 AA1ZZZ          59  05     JT1Z          59  23     0\n\
               X-QSO: 7250 PH 2000-10-26 0711 AA1ZZZ 59 05 WA6MIC 59 03 1\n\
               END-OF-LOG:\n\
               START-OF-LOG: 2.0\n\
               CALLSIGN: N5KO\n\
               QSO: 21042 CW 1997-11-01 2102 N5KO 3 B 74 STX K9ZO 2 A 69 IL\n\
               QSO:   144 PH 2026-10-06 2231 KW9D FN31 K1AB EN52\n";

#[test]
fn a_contest_log() {
    let rows = rows("cabrillo", LOG);
    assert_eq!(rows.len(), 13, "every line is a row");
    is(
        &rows[5],
        &[
            ("kind", "qso"),
            ("version", "3.0"),
            ("contest", "CQ-WW-SSB"),
            ("station", "AA1ZZZ"),
            ("timestamp", "972544260000"),
            ("frequency", "3799000"),
            ("band_name", "80m"),
            ("mode", "PH"),
            ("sent_exchange", "59 05"),
            ("rcvd_call", "K9QZO"),
            ("rcvd_exchange", "59 04"),
            ("transmitter", "0"),
        ],
    );
    is(
        &rows[7],
        &[
            ("kind", "x-qso"),
            ("rcvd_call", "WA6MIC"),
            ("transmitter", "1"),
        ],
    );
    is(
        &rows[4],
        &[
            ("kind", "header"),
            ("tag", "SOAPBOX"),
            ("value", "Put your comments here."),
        ],
    );
    is(
        &rows[11],
        &[
            ("log", "2"),
            ("version", "2.0"),
            ("station", "N5KO"),
            ("sent_exchange", "3 B 74 STX"),
            ("rcvd_call", "K9ZO"),
            ("rcvd_exchange", "2 A 69 IL"),
            ("timestamp", "878418120000"),
        ],
    );
    assert!(
        !rows[11].contains_key("contest"),
        "a new log begins without the contest of the last"
    );
    is(
        &rows[12],
        &[
            ("band_name", "2m"),
            ("band", "202"),
            ("sent_exchange", "FN31"),
            ("remarks", "off-year"),
        ],
    );
    assert!(!rows[12].contains_key("frequency"));
}

/// A message as another collector stores it, with its own key for the time of receipt.
#[test]
fn a_message_of_psk_reporter() {
    let alone = r#"{"sq":71648822779,"f":18101342,"md":"FT8","rp":-2,"t":1786544894,"t_tx":1786544894,"sc":"G6EES","sl":"IO91FM","rc":"KB3Z","rl":"FN20GE","sa":223,"ra":291,"b":"17m","_rx":1786545015.473}"#;
    let row = &rows("psk", alone)[0];
    is(
        row,
        &[
            ("sequence", "71648822779"),
            ("frequency", "18101342"),
            ("band", "108"),
            ("band_name", "17m"),
            ("mode", "FT8"),
            ("snr", "-2"),
            ("timestamp", "1786544894000"),
            ("sent_at", "1786544894000"),
            ("sender", "G6EES"),
            ("sender_grid", "IO91FM"),
            ("receiver", "KB3Z"),
            ("receiver_grid", "FN20GE"),
            ("sender_dxcc", "223"),
            ("receiver_dxcc", "291"),
            ("extra", r#"{"_rx":1786545015.473}"#),
            ("raw", alone),
        ],
    );
    assert!(!row.contains_key("parse_error"));
    // Without the two countries, as messages of 2022 were.
    let early = r#"{"sq":30142870791,"f":21074653,"md":"FT8","rp":-5,"t":1662407712,"t_tx":1662407697,"sc":"ok7ps","sl":"JN79aa","rc":"CU3AT","rl":"HM68jp","b":"15m"}"#;
    let captured = format!(
        "{}\n{}\n",
        serde_json::json!({"rx": "2022-09-05T19:55:13.001Z", "topic": "pskr/filter/v2/15m/FT8/ok7ps/CU3AT", "raw": early}),
        r#"{"rx":"2022-09-05T19:55:14.000Z","event":"disconnected","detail":"timed out"}"#,
    );
    let rows = rows("psk", &captured);
    is(
        &rows[0],
        &[
            ("received_at", "1662407713001"),
            ("sender", "ok7ps"),
            ("sent_at", "1662407697000"),
            ("raw", early),
        ],
    );
    is(
        &rows[1],
        &[("event", "disconnected"), ("detail", "timed out")],
    );
    assert!(!rows[1].contains_key("raw") && !rows[0].contains_key("sender_dxcc"));
}

#[test]
fn indices_of_gfz_and_silso() {
    let gfz = "# PURPOSE: This file distributes the geomagnetic planetary three-hour index Kp\n\
               2025 11 18 34290 34290.5 2622 10  2.667  2.000  2.000  0.667  0.333  0.000  0.333  0.667   12    7    7    3    2    0    2    3     4  63    120.1    117.4 0\n\
               1932 01 01     0     0.5 1352  7  3.333  2.667  2.333  2.667  3.333  2.667  3.333  3.333   18   12    9   12   18   12   18   18    15   6     -1.0     -1.0 2\n";
    let found = rows("solar", gfz);
    assert_eq!(found.len(), 40);
    is(
        &found[0],
        &[
            ("timestamp", "1763424000000"),
            ("hours", "3"),
            ("index", "kp"),
            ("value", "2667"),
            ("status", "preliminary"),
        ],
    );
    is(
        &found[1],
        &[("timestamp", "1763434800000"), ("value", "2000")],
    );
    is(
        &found[18],
        &[
            ("index", "f107_observed"),
            ("value", "120100"),
            ("hours", "24"),
            ("source", "gfz"),
        ],
    );
    is(
        &found[20],
        &[("timestamp", "-1199232000000"), ("status", "definitive")],
    );
    assert!(!found[38].contains_key("value"), "-1 is not a flux");

    let found = rows(
        "solar",
        "1818;01;01;1818.001;  -1; -1.0;   0;1\n2026;08;31;2026.664;  58;  8.1;  33;0\n",
    );
    assert!(!found[0].contains_key("value"));
    is(
        &found[2],
        &[
            ("index", "sunspots"),
            ("value", "58000"),
            ("status", "preliminary"),
            ("source", "silso"),
        ],
    );
    is(
        &found[3],
        &[("index", "sunspots_deviation"), ("value", "8100")],
    );
}

#[test]
fn indices_of_drao_and_swpc() {
    let drao = "fluxdate    fluxtime    fluxjulian    fluxcarrington  fluxobsflux  fluxadjflux  fluxursi  \n\
                ----------  ----------  ------------  --------------  -----------  -----------  ----------\n\
                20041028    170000      02453307.229  002022.605      000132.7     000130.9     000117.8  \n";
    let found = rows("solar", drao);
    is(
        &found[0],
        &[
            ("timestamp", "1098982800000"),
            ("hours", "0"),
            ("index", "f107_observed"),
            ("value", "132700"),
        ],
    );
    is(
        &found[2],
        &[
            ("index", "f107_absolute"),
            ("value", "117800"),
            ("source", "drao"),
        ],
    );

    let dsd = ":Product: Daily Solar Data            DSD.txt\n:Issued: 0825 UT 22 Sep 2026\n#  Date     10.7cm Number\n\
               2026 09 19   97     11       10      1    -999      *   1  0  0  0  0  0  0\n\
               2026 09 02     *      *      170      1    -999      *   3  1  0  0  0  0  0\n";
    let found = rows("solar", dsd);
    is(
        &found[0],
        &[
            ("index", "f107_observed"),
            ("value", "97000"),
            ("source", "swpc-dsd"),
        ],
    );
    is(&found[1], &[("index", "sunspots_sesc"), ("value", "11000")]);
    assert!(!found[2].contains_key("value"));

    let dgd = ":Product: Daily Geomagnetic Data          DGD.txt\n\
               2025 11 29     7  1 1 0 2 3 3 2 1     4  1 0 0 2 2 1 0 0     5   1.00  1.33  0.67  2.00  1.67  1.67  1.33  1.00\n";
    let found = rows("solar", dgd);
    is(
        &found[0],
        &[
            ("index", "ap_daily"),
            ("value", "5000"),
            ("status", "estimated"),
        ],
    );
    is(
        &found[8],
        &[
            ("index", "kp"),
            ("value", "1000"),
            ("timestamp", "1764450000000"),
        ],
    );
}
