//! Suites: definition, plan, order, peers, verification, runner.
