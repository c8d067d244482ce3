//! The page that shows an hour of the table. It is one file with nothing from elsewhere, so that it
//! works on a station without the internet.

use super::answer::Answer;

const PAGE: &str = include_str!("page.html");

pub(super) fn answer() -> Answer {
    Answer::page(PAGE.to_owned())
}
