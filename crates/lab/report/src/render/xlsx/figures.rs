//! Every figure of the report, as `report.json` has them.

use std::collections::BTreeSet;

use rust_xlsxwriter::{Workbook, XlsxError};

use super::sheet::{clipped, head_format, number_format};
use crate::model::Report;

const HEADS: [&str; 12] = [
    "suite",
    "case",
    "system",
    "metric",
    "unit",
    "better",
    "n",
    "median",
    "low",
    "high",
    "limit",
    "share of limit",
];

pub(super) fn add(workbook: &mut Workbook, report: &Report, name: &str) -> Result<(), XlsxError> {
    let sheet = workbook.add_worksheet().set_name(name)?;
    let figures = &report.figures;
    let peers: BTreeSet<&String> = figures.iter().flat_map(|f| f.ratio_to.keys()).collect();
    let heads = HEADS.iter().map(|&head| head.to_owned());
    let heads: Vec<String> = heads
        .chain(["seed document".to_owned()])
        .chain(peers.iter().map(|peer| format!("dyno ÷ {peer}")))
        .collect();
    let head = head_format();
    for (column, text) in (0..).zip(&heads) {
        sheet.write_string_with_format(0, column, clipped(text), &head)?;
        let width = if (1..5).contains(&column) { 22.0 } else { 14.0 };
        sheet.set_column_width(column, width)?;
    }
    sheet.set_freeze_panes(1, 0)?;
    sheet.autofilter(0, 0, figures.len() as u32, heads.len() as u16 - 1)?;
    for (row, figure) in (1..).zip(figures) {
        let better = match figure.better {
            dyno_record::Better::Higher => "higher",
            dyno_record::Better::Lower => "lower",
        };
        let texts = [
            &figure.suite,
            &figure.case,
            &figure.system,
            &figure.metric,
            &figure.unit,
        ];
        for (column, text) in (0..).zip(texts) {
            sheet.write_string(row, column, clipped(text))?;
        }
        sheet.write_string(row, 5, better)?;
        let unit = figure.unit.as_str();
        let numbers = [
            (Some(figure.n as f64), ""),
            (Some(figure.median), unit),
            (figure.low, unit),
            (figure.high, unit),
            (figure.limit, unit),
            (figure.share_of_limit, "%"),
            (figure.seed_figure, unit),
        ];
        let ratios = peers.iter().map(|peer| {
            let ratio = figure.ratio_to.get(*peer);
            (ratio.map(|ratio| ratio.ratio), "x")
        });
        for (column, (value, unit)) in (6..).zip(numbers.into_iter().chain(ratios)) {
            if let Some(value) = value {
                let format = number_format(value, unit, figure.n == 1);
                sheet.write_number_with_format(row, column, value, &format)?;
            }
        }
    }
    Ok(())
}
