//! What this machine is, what it can do, what a run used.
