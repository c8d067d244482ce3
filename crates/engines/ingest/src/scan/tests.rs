use proptest::prelude::*;

use super::*;

const LINE: &str =
    "7300000001,1672531320,K1ABC,FN42ab,-21,14.097037,WW0WWV,EM10,23,0,2450,271,14,2.6.1,0";

fn scan(text: &[u8]) -> (Scanner, Vec<(u64, String)>) {
    let mut scanner = Scanner::default();
    let mut bad = Vec::new();
    scanner.scan(&Block::from_text(text), &mut |row| {
        bad.push((row.line, row.reason))
    });
    (scanner, bad)
}

/// The rows of `columns` as the careful way would give them.
fn rows(columns: &Columns) -> Vec<Row> {
    let d = &columns.dictionaries;
    let word = |strings: &Strings, code: u32| {
        String::from_utf8(strings.iter().nth(code as usize).unwrap().to_vec()).unwrap()
    };
    (0..columns.len())
        .map(|i| Row {
            id: columns.id[i],
            timestamp: columns.timestamp[i],
            reporter: word(&d.reporter, columns.reporter[i]),
            reporter_grid: word(&d.reporter_grid, columns.reporter_grid[i]),
            snr: columns.snr[i],
            frequency: d.frequency.values()[columns.frequency[i] as usize],
            callsign: word(&d.callsign, columns.callsign[i]),
            grid: word(&d.grid, columns.grid[i]),
            power: columns.power[i],
            drift: columns.drift[i],
            distance: columns.distance[i],
            azimuth: columns.azimuth[i],
            version: word(&d.version, columns.version[i]),
            code: columns.code[i],
        })
        .collect()
}

/// Fast and careful must agree on every line, wherever it stands.
fn check(lines: &[Vec<u8>]) {
    let text: Vec<u8> = lines
        .iter()
        .flat_map(|line| [line.as_slice(), b"\n"].concat())
        .collect();
    let (scanner, bad) = scan(&text);
    let (mut expected, mut expected_bad) = (Vec::new(), Vec::new());
    for (i, line) in text.split(|&b| b == b'\n').enumerate().take(lines.len()) {
        match parse_line(line) {
            Ok(Some(row)) => expected.push(row),
            Ok(None) => {}
            Err(reason) => expected_bad.push((i as u64 + 1, reason)),
        }
    }
    let mut in_order = bad;
    in_order.sort();
    assert_eq!(in_order, expected_bad);
    assert_eq!(rows(&scanner.columns), expected);
    assert_eq!(scanner.lines(), lines.len() as u64);
}

#[test]
fn a_plain_row_takes_the_fast_way_and_comes_out_whole() {
    let (scanner, bad) = scan(LINE.as_bytes());
    assert!(bad.is_empty());
    let row = &rows(&scanner.columns)[0];
    assert_eq!(
        (row.id, row.timestamp, row.snr, row.frequency),
        (7_300_000_001, 1_672_531_320, -21, 14_097_037)
    );
    assert_eq!(
        (
            row.callsign.as_str(),
            row.grid.as_str(),
            row.distance,
            row.azimuth
        ),
        ("WW0WWV", "EM10", 2450, 271)
    );
    check(&vec![LINE.as_bytes().to_vec(); 700]);
}

#[test]
fn odd_rows_are_taken_or_refused_with_the_field_named() {
    let with = |from: &str, to: &str| LINE.replacen(from, to, 1);
    let taken = [
        with("K1ABC", "\"K1ABC\""),
        with("K1ABC", r"K1\,ABC"),
        with("WW0WWV", "<PJ4/K1ABC/QRPP/LONG>"),
        with("WW0WWV", "ÖE1XYZ"),
        with("FN42ab", ""),
        with("2.6.1,0", "2.6.1,"),
        with("2.6.1", "2.7.0-rc4-devel"),
        with("14.097037", "14"),
        with("14.097037", "14.0970365"),
        with("14.097037", "10368.123456789"),
        with(",14,2.6.1", ",-1,2.6.1"),
        format!("{LINE}\r"),
    ];
    for line in &taken {
        assert!(matches!(parse_line(line.as_bytes()), Ok(Some(_))), "{line}");
    }
    let refused = [
        (with("-21", "-210"), "field 5 (SNR)"),
        (with("-21", "-21.0"), "field 5 (SNR)"),
        (with("-21", "+21"), "field 5 (SNR)"),
        (with("271", "70000"), "field 12 (azimuth)"),
        (with("7300000001", "x"), "field 1 (id)"),
        (with("14.097037", "14.0.1"), "field 6 (frequency)"),
        (with("14.097037", "-14.1"), "field 6 (frequency)"),
        (with("K1ABC", "\"K1ABC"), "never closed"),
        (with("K1ABC,", ""), "14 fields"),
        (format!("{LINE},1"), "16 fields"),
        (with("2450", ""), "field 11 (distance)"),
    ];
    for (line, reason) in &refused {
        let error = parse_line(line.as_bytes()).unwrap_err();
        assert!(error.contains(reason), "{line}: {error}");
    }
    let lines: Vec<Vec<u8>> = taken
        .iter()
        .chain(refused.iter().map(|(line, _)| line))
        .map(|l| l.clone().into_bytes())
        .collect();
    check(&lines);
    check(
        &[
            vec![LINE.as_bytes().to_vec(); 300],
            lines,
            vec![LINE.as_bytes().to_vec(); 3],
        ]
        .concat(),
    );
}

#[test]
fn bad_rows_leave_nothing_in_the_dictionaries() {
    let text = format!(
        "{LINE}\n{}\n",
        LINE.replace("K1ABC", "JUNK").replace("-21", "x")
    );
    let (scanner, bad) = scan(text.as_bytes());
    assert_eq!(bad.len(), 1);
    assert_eq!(
        scanner
            .columns
            .dictionaries
            .reporter
            .iter()
            .collect::<Vec<_>>(),
        [b"K1ABC"]
    );
}

/// A line with one field replaced, or bytes of any kind.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let field = prop_oneof![
        "[0-9]{0,11}",
        "-?[0-9]{1,3}",
        "[0-9]{1,3}\\.[0-9]{0,8}",
        "[A-Z0-9/<>\"\\\\,é ]{0,20}"
    ];
    let replaced = (0usize..15, field).prop_map(|(at, with)| {
        let mut fields: Vec<&str> = LINE.split(',').collect();
        fields[at] = &with;
        fields.join(",").into_bytes()
    });
    let damaged = (any::<u8>(), 0..LINE.len()).prop_map(|(byte, at)| {
        let mut line = LINE.as_bytes().to_vec();
        line[at] = if byte == b'\n' { b'\r' } else { byte };
        line
    });
    prop_oneof![4 => Just(LINE.as_bytes().to_vec()), 3 => replaced, 2 => damaged, 1 => Just(Vec::new())]
}

proptest! {
    #[test]
    fn the_fast_way_agrees_with_the_careful_one(lines in proptest::collection::vec(line(), 1..600)) {
        check(&lines);
    }
}
