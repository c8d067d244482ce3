//! Bootstrap intervals, paired comparison, noise bands, outliers.
