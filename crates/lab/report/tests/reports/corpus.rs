//! Planted faults and sound files, one a file: `corpus/planted` names in its first line the rule that
//! must find the fault, and nothing in `corpus/sound` may be called an error.

use dyno_report::{lint_score, selfcheck};

/// The share of planted faults that the linter has to find.
const FOUND_MIN: f64 = 0.90;

#[test]
fn planted_faults_are_found_by_their_rule() {
    let score = lint_score();
    let (found, planted) = (score.found(), score.planted);
    println!("planted: {found} of {planted} found\n{:#?}", score.missed);
    assert!(planted >= 86, "the 46 of the review and 40 more");
    assert!(
        found as f64 >= FOUND_MIN * planted as f64,
        "{:#?}",
        score.missed
    );
}

#[test]
fn sound_files_have_no_error() {
    let score = lint_score();
    println!("sound: {} files", score.sound);
    assert!(score.sound >= 50, "the 10 of the review and 40 more");
    assert!(score.flagged.is_empty(), "{:#?}", score.flagged);
}

#[test]
fn every_goal_is_reached() {
    let checked = selfcheck(false);
    let lines = checked.to_lines();
    println!("{}", lines.join("\n"));
    assert!(checked.below.is_empty(), "{:#?}", checked.below);
    assert_eq!(
        lines.last().map(String::as_str),
        Some("every goal is reached")
    );
}
