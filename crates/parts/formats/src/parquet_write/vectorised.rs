//! Work compiled for what the processor has. Has `unsafe`: the calls into such code.

/// Arithmetic over whole columns.
pub(super) trait Work {
    /// What comes out.
    type Output;

    /// Does it. Implementations, and what they call, are `inline(always)`, or they are compiled
    /// once only.
    fn work(self) -> Self::Output;
}

/// Does the work in the widest registers that there are.
pub(super) fn vectorised<W: Work>(work: W) -> W::Output {
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
