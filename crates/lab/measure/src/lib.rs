//! Load schedules, latency recorders and steady state.
