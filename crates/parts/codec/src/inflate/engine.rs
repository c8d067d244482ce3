//! The two engines behind one interface, for raw deflate streams.

use std::io::Read;

use flate2::{Decompress, FlushDecompress, Status};

use super::decoder::Decoder;
use super::input::Input;
use super::{InflateError, InflateErrorKind, OUTPUT_MARGIN};

/// Which decoder does the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Engine {
    /// This crate's decoder, several times faster than zlib.
    #[default]
    Native,
    /// The decoder of zlib-rs, slower and independent of the other.
    Portable,
}

enum Inner {
    Native(Box<Decoder>),
    Portable {
        state: Box<Decompress>,
        finished: bool,
    },
}

/// A raw deflate stream (RFC 1951), as it is found in a ZIP entry.
pub struct DeflateStream<R> {
    pub(super) input: Input<R>,
    inner: Inner,
}

impl<R: Read> DeflateStream<R> {
    /// A stream of the bytes that `reader` returns.
    pub fn new(reader: R, engine: Engine) -> Self {
        let inner = match engine {
            Engine::Native => Inner::Native(Box::new(Decoder::new())),
            Engine::Portable => Inner::Portable {
                state: Box::new(Decompress::new(false)),
                finished: false,
            },
        };
        DeflateStream {
            input: Input::new(reader),
            inner,
        }
    }

    /// Inflates to `out[at..]` and returns the new write position. `out[..at]` must end with the
    /// last [`super::HISTORY`] bytes that were written (all of them if there are fewer). It stops
    /// when fewer than [`OUTPUT_MARGIN`] bytes are free. The position stays the same only if the
    /// stream has ended or the space was too small from the start.
    ///
    /// # Errors
    /// [`InflateError`] with the offset in the compressed stream.
    pub fn inflate_into(&mut self, out: &mut [u8], at: usize) -> Result<usize, InflateError> {
        match &mut self.inner {
            Inner::Native(decoder) => decoder.inflate(&mut self.input, out, at),
            Inner::Portable { state, finished } => {
                inflate_portable(state, finished, &mut self.input, out, at)
            }
        }
    }

    /// Whether the stream's last block was written.
    pub fn finished(&self) -> bool {
        match &self.inner {
            Inner::Native(decoder) => decoder.finished(),
            Inner::Portable { finished, .. } => *finished,
        }
    }

    /// Offset of the next compressed byte in the input.
    pub fn offset(&self) -> u64 {
        match &self.inner {
            Inner::Native(decoder) => {
                self.input.offset()
                    - u64::from(if decoder.finished() {
                        decoder.bit_count / 8
                    } else {
                        0
                    })
            }
            Inner::Portable { .. } => self.input.offset(),
        }
    }

    /// Reads a byte behind the stream's end: a trailer, or the next member.
    pub(super) fn byte_behind(&mut self, what: &'static str) -> Result<u8, InflateError> {
        // The native decoder reads ahead into its bit buffer, so bytes behind the stream may be
        // there and not in the input.
        if let Inner::Native(decoder) = &mut self.inner
            && decoder.bit_count >= 8
        {
            let byte = decoder.bits as u8;
            decoder.bits >>= 8;
            decoder.bit_count -= 8;
            return Ok(byte);
        }
        self.input.byte(what)
    }

    /// Whether nothing follows the stream's end.
    pub(super) fn at_end(&mut self) -> Result<bool, InflateError> {
        if let Inner::Native(decoder) = &self.inner
            && decoder.bit_count >= 8
        {
            return Ok(false);
        }
        Ok(self.input.want(1)? == 0)
    }

    /// Discards the rest of the reader once the bit buffer is empty. Returns how many bytes that
    /// was.
    pub(super) fn discard_unless_bits(&mut self) -> Result<u64, InflateError> {
        match &self.inner {
            Inner::Native(decoder) if decoder.bit_count >= 8 => Ok(0),
            _ => self.input.discard(),
        }
    }

    /// Begins the next stream where this one ended.
    pub(super) fn restart(&mut self) {
        match &mut self.inner {
            Inner::Native(decoder) => decoder.restart(),
            Inner::Portable { state, finished } => {
                state.reset(false);
                *finished = false;
            }
        }
    }
}

fn inflate_portable<R: Read>(
    state: &mut Decompress,
    finished: &mut bool,
    input: &mut Input<R>,
    out: &mut [u8],
    mut at: usize,
) -> Result<usize, InflateError> {
    while !*finished && out.len().saturating_sub(at) >= OUTPUT_MARGIN {
        input.want(1)?;
        let (read, written) = (state.total_in(), state.total_out());
        let status = state
            .decompress(input.waiting(), &mut out[at..], FlushDecompress::None)
            .map_err(|_| input.error(InflateErrorKind::Corrupt("zlib-rs refuses the stream")))?;
        let (read, written) = (state.total_in() - read, state.total_out() - written);
        input.consume(read as usize);
        at += written as usize;
        match status {
            Status::StreamEnd => *finished = true,
            // There was input or the reader is at its end, and there is room, so no progress means
            // that the stream is cut off.
            _ if read == 0 && written == 0 => {
                return Err(input.error(InflateErrorKind::Truncated("a deflate block")));
            }
            _ => {}
        }
    }
    Ok(at)
}
