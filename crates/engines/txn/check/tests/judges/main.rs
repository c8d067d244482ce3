//! What the judges say of histories: known ones, random ones, and beside a checker that we did not
//! write.

mod known_histories;
mod random;
mod second_opinion;
mod story;
