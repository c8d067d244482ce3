//! Runs loops that are compiled for several sets of vector instructions, and chooses the one that
//! the processor has. The calls into such code are `unsafe`.

/// A loop over whole columns that is worth vectorising.
pub(crate) trait Work {
    /// The result of [`Work::work`].
    type Output;

    /// Runs the loop. Implementations, and what they call, must be `inline(always)`. Otherwise they
    /// are compiled once, for the oldest processor.
    fn work(self) -> Self::Output;
}

/// Runs the loop in the widest registers that the processor has.
pub(crate) fn vectorised<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("bmi2")
        {
            // SAFETY: the processor has just been asked for each of the features.
            return unsafe { with_avx512(work) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
            // SAFETY: as above.
            return unsafe { with_avx2(work) };
        }
    }
    work.work()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn with_avx512<W: Work>(work: W) -> W::Output {
    work.work()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2")]
fn with_avx2<W: Work>(work: W) -> W::Output {
    work.work()
}
