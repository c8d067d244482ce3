//! Recovery of bytes that nobody wrote; the fuzz target `log` runs the same check.

mod bytes;

use proptest::prelude::*;

const MANIFEST: &[u8] = include_bytes!("fixture-v1/manifest");
const CHECKPOINT: &[u8] = include_bytes!("fixture-v1/checkpoint-000001");
const SEGMENT: &[u8] = include_bytes!("fixture-v1/segment-000000");

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_harm_it(segment in prop::collection::vec(any::<u8>(), 0..20_000)) {
        let (manifest, checkpoint) = (("manifest", MANIFEST), ("checkpoint-000001", CHECKPOINT));
        bytes::check(&[manifest, checkpoint, ("segment-000000", &segment)]);
        bytes::check(&[("segment-000000", &segment)]);
        bytes::check(&[("manifest", &segment)]);
    }

    #[test]
    fn nor_does_a_log_with_bytes_changed(
        changes in prop::collection::vec((0usize..3, 0usize..12_288, any::<u8>()), 1..6),
    ) {
        let mut files = [MANIFEST.to_vec(), CHECKPOINT.to_vec(), SEGMENT.to_vec()];
        for (file, at, byte) in changes {
            if let Some(changed) = files[file].get_mut(at) {
                *changed = byte;
            }
        }
        let names = ["manifest", "checkpoint-000001", "segment-000000"];
        let named: Vec<_> = names.into_iter().zip(files.iter().map(Vec::as_slice)).collect();
        bytes::check(&named);
    }
}
