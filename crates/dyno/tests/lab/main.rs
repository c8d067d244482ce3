//! Runs of the lab: of every built-in suite, and what becomes of a run that is interrupted.

mod home;
mod interrupted;

mod tiny_suites;
