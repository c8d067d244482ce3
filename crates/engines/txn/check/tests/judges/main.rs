//! What the judges say of histories: known ones, random ones, and beside a checker that we did not
//! write.

mod known;
mod random;
mod second_opinion;
mod story;
