//! What a report says of clocks and temperatures.

use crate::made_up;

use dyno_record::Span;
use dyno_report::build_stored;

#[test]
fn clocks_and_their_absence_stand_among_the_conditions() {
    let mut stored = made_up::stored();
    for (index, sample) in stored.samples.iter_mut().enumerate() {
        let slowest = if index == 3 { 1_200.0 } else { 2_400.0 };
        sample.sensors.clock_mhz = Span::from_values([slowest, 2_400.0, 3_500.0]);
    }
    let reason = "no thermal zone".to_owned();
    stored.run.unread.insert("temperature".into(), reason);
    let report = build_stored(&stored);
    let samples = stored.samples.len();
    let clock = format!(
        "clock around samples: 2.40 GHz in the middle, 1.20 GHz to 3.50 GHz (read before and after \
         {samples} samples)"
    );
    let page = report.to_markdown().unwrap();
    assert!(page.contains(&clock), "{page}");
    assert!(page.contains("temperature around samples: not available: no thermal zone"));
    assert!(report.to_html().unwrap().contains("clock around samples"));
    // A processor whose clock is fixed, as a virtual machine shows it.
    for sample in &mut stored.samples {
        sample.sensors.clock_mhz = Span::from_values([2_300.0]);
    }
    let page = build_stored(&stored).to_markdown().unwrap();
    assert!(page.contains("2.30 GHz throughout"), "{page}");
}

#[test]
fn a_record_of_an_earlier_version_says_nothing_of_them() {
    let page = build_stored(&made_up::stored()).to_markdown().unwrap();
    assert!(!page.contains("around samples"), "{page}");
}
