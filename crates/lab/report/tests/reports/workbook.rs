//! The workbook of a made-up run, unpacked: what is in its cells is what the report says.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use crate::made_up::{HOSTILE, stored};
use dyno_report::{Report, build_stored};
use zip::ZipArchive;

/// The files of a workbook by name.
fn unpacked(report: &Report) -> BTreeMap<String, String> {
    let mut archive = ZipArchive::new(Cursor::new(report.to_xlsx().unwrap())).unwrap();
    let mut files = BTreeMap::new();
    for at in 0..archive.len() {
        let mut file = archive.by_index(at).unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        files.insert(file.name().unwrap().into_owned(), text);
    }
    files
}

/// What stands between two pieces of markup, each time.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> Vec<&'a str> {
    let pieces = text.split(begin).skip(1);
    pieces
        .map(|piece| piece.split(end).next().unwrap())
        .collect()
}

fn unescaped(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">");
    text.replace("&quot;", "\"").replace("&amp;", "&")
}

/// The cells of a sheet by place, such as `H2`; text through the table of shared strings.
fn cells(files: &BTreeMap<String, String>, sheet: &str) -> BTreeMap<String, String> {
    let names: Vec<&str> = between(&files["xl/workbook.xml"], "<sheet name=\"", "\"");
    let number = names.iter().position(|&name| name == sheet).unwrap() + 1;
    let strings: Vec<String> = between(&files["xl/sharedStrings.xml"], "<si>", "</si>")
        .into_iter()
        .map(|item| unescaped(item.split('>').nth(1).unwrap().split("</t").next().unwrap()))
        .collect();
    let sheet = &files[&format!("xl/worksheets/sheet{number}.xml")];
    assert!(
        sheet.contains("state=\"frozen\""),
        "header rows stay in view"
    );
    let mut found = BTreeMap::new();
    for cell in between(sheet, "<c r=\"", "</c>") {
        let place = cell.split('"').next().unwrap();
        let value = between(cell, "<v>", "</v>").first().copied();
        let value = value.unwrap_or_default();
        let value = if cell.contains("t=\"s\"") {
            strings[value.parse::<usize>().unwrap()].clone()
        } else {
            value.to_owned()
        };
        found.insert(place.to_owned(), value);
    }
    found
}

#[test]
fn figures_are_those_of_the_json_report() {
    let report = build_stored(&stored());
    let json: serde_json::Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
    let cells = cells(&unpacked(&report), "figures");
    let figures = json["figures"].as_array().unwrap();
    assert!(figures.len() > 20);
    for (row, figure) in (2..).zip(figures) {
        for (column, key) in [
            ("B", "case"),
            ("C", "system"),
            ("D", "metric"),
            ("E", "unit"),
        ] {
            let cell = cells.get(&format!("{column}{row}"));
            assert_eq!(
                cell.map_or("", String::as_str),
                figure[key].as_str().unwrap()
            );
        }
        let numbers = [
            ("G", "n"),
            ("H", "median"),
            ("I", "low"),
            ("J", "high"),
            ("K", "limit"),
            ("L", "share_of_limit"),
            ("M", "seed_figure"),
        ];
        for (column, key) in numbers {
            let cell = cells.get(&format!("{column}{row}"));
            let cell = cell.map(|text| text.parse::<f64>().unwrap());
            assert_eq!(cell, figure[key].as_f64(), "{column}{row}: {key}");
        }
    }
}

#[test]
fn every_table_has_a_sheet_and_its_numbers_are_numbers() {
    let report = build_stored(&stored());
    let files = unpacked(&report);
    for table in &report.tables {
        let name: String = table.title.chars().take(31).collect();
        let cells = cells(&files, name.trim_end());
        for (row, line) in (2..).zip(&table.rows) {
            assert_eq!(cells[&format!("A{row}")], line[0].text);
            for (column, cell) in ('A'..='Z').zip(line) {
                let shown = &cells[&format!("{column}{row}")];
                let value = cell.value.as_ref().map(|amount| amount.value);
                let number = shown.parse::<f64>().ok().filter(|_| value.is_some());
                assert!(
                    number == value || *shown == cell.text,
                    "{column}{row}: {shown}"
                );
            }
        }
    }
    let charts = files
        .keys()
        .filter(|name| name.starts_with("xl/charts/chart"));
    assert!(charts.count() > report.cases.len());
}

#[test]
fn text_of_a_record_is_text() {
    let report = build_stored(&stored());
    let files = unpacked(&report);
    assert!(
        cells(&files, "summary")
            .values()
            .any(|text| text.contains(HOSTILE))
    );
    for (name, text) in &files {
        assert!(!text.contains("<img"), "{name}");
        assert!(
            !name.starts_with("xl/worksheets/") || !text.contains("<f>"),
            "{name}"
        );
        assert!(!text.contains("hyperlink"), "{name}");
    }
}

#[test]
fn the_same_record_gives_the_same_workbook() {
    let again = build_stored(&stored()).to_xlsx().unwrap();
    // For people: DYNO_KEEP_WORKBOOK=/tmp/report.xlsx keeps the workbook to look at.
    if let Some(path) = std::env::var_os("DYNO_KEEP_WORKBOOK") {
        std::fs::write(path, &again).unwrap();
    }
    assert!(build_stored(&stored()).to_xlsx().unwrap() == again);
}
