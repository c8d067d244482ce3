//! The two engines behind one call, for raw deflate streams.

use std::io::Read;

use flate2::{Decompress, FlushDecompress, Status};

use super::decoder::Decoder;
use super::input::Input;
use super::{InflateError, InflateErrorKind, OUTPUT_MARGIN};

/// Which decoder does the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Engine {
    /// Ours, several times faster than zlib.
    #[default]
    Native,
    /// zlib-rs.
    Portable,
}

enum Inner {
    Native(Box<Decoder>),
    Portable {
        state: Box<Decompress>,
        finished: bool,
    },
}

/// A raw deflate stream (RFC 1951), as it stands in a ZIP entry.
pub struct DeflateStream<R> {
    pub(super) input: Input<R>,
    inner: Inner,
}

impl<R: Read> DeflateStream<R> {
    /// Begins to inflate what `reader` gives.
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

    /// Inflates to `out[at..]` and returns the new write position; `out[..at]` must end with the
    /// last [`super::HISTORY`] bytes put out (all of them, when there are fewer). Stops when less
    /// than [`OUTPUT_MARGIN`] bytes are free; the position stays where it was only when the stream
    /// has ended or the space was too small from the start.
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

    /// Whether the stream's last block has been put out.
    pub fn finished(&self) -> bool {
        match &self.inner {
            Inner::Native(decoder) => decoder.finished(),
            Inner::Portable { finished, .. } => *finished,
        }
    }

    /// Offset of the next compressed byte.
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

    /// A byte behind the stream's end: trailers, the next member.
    pub(super) fn byte_behind(&mut self, what: &'static str) -> Result<u8, InflateError> {
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

    /// Whether nothing stands behind the stream's end.
    pub(super) fn at_end(&mut self) -> Result<bool, InflateError> {
        if let Inner::Native(decoder) = &self.inner
            && decoder.bit_count >= 8
        {
            return Ok(false);
        }
        Ok(self.input.want(1)? == 0)
    }

    /// Discards what waits in the reader once the bit buffer is empty; returns how many bytes.
    pub(super) fn discard_unless_bits(&mut self) -> Result<u64, InflateError> {
        match &self.inner {
            Inner::Native(decoder) if decoder.bit_count >= 8 => Ok(0),
            _ => self.input.discard(),
        }
    }

    /// Begins the next stream at the place where this one ended.
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
        input.take(read as usize);
        at += written as usize;
        match status {
            Status::StreamEnd => *finished = true,
            _ if read == 0 && written == 0 => {
                return Err(input.error(InflateErrorKind::Truncated("a deflate block")));
            }
            _ => {}
        }
    }
    Ok(at)
}
