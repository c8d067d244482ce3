//! Showing the token, by the mechanism PLAIN (RFC 4616). The user's name is not looked at: the
//! password is the token.

use bytes::Bytes;

use crate::connection::{Answer, Pending};
use crate::error::ErrorCode;
use crate::wire::{
    Header, SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest,
    SaslHandshakeResponse,
};

use super::Session;

const MECHANISM: &str = "PLAIN";
/// After a handshake of this version the password comes without a header, and so does the answer.
const BARE_VERSION: i16 = 0;
/// A frame of no bytes, which is the answer to a right password without a header.
const EMPTY_FRAME: &[u8] = &[0; 4];

/// How far a client has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It has to choose a mechanism.
    Handshake,
    /// It has to show the token.
    Authenticate,
    /// It has to show the token, in a frame without a header.
    AuthenticateBare,
    /// It may ask for everything.
    Admitted,
}

impl Session {
    pub(super) fn sasl_handshake(
        &mut self,
        header: &Header,
        request: SaslHandshakeRequest,
    ) -> SaslHandshakeResponse {
        let error = if request.mechanism == MECHANISM {
            ErrorCode::NONE
        } else {
            ErrorCode::UNSUPPORTED_SASL_MECHANISM
        };
        if error == ErrorCode::NONE && self.sasl == State::Handshake {
            self.sasl = match header.version {
                BARE_VERSION => State::AuthenticateBare,
                _ => State::Authenticate,
            };
        }
        SaslHandshakeResponse {
            error_code: error.0,
            mechanisms: vec![MECHANISM.to_owned()],
        }
    }

    pub(super) fn sasl_authenticate(
        &mut self,
        _: &Header,
        request: SaslAuthenticateRequest,
    ) -> SaslAuthenticateResponse {
        let refused = |error: ErrorCode, text: &str| SaslAuthenticateResponse {
            error_code: error.0,
            error_message: Some(text.to_owned()),
            ..SaslAuthenticateResponse::default()
        };
        if self.sasl == State::Handshake {
            return refused(
                ErrorCode::ILLEGAL_SASL_STATE,
                "no mechanism was chosen before",
            );
        }
        if !self.is_right(&request.auth_bytes) {
            // The client may try again within its time. It is not told which part was wrong.
            let text = "the password is not the token of this server";
            return refused(ErrorCode::SASL_AUTHENTICATION_FAILED, text);
        }
        self.sasl = State::Admitted;
        SaslAuthenticateResponse::default()
    }

    /// A frame that is the message of the mechanism and nothing else, if one has to come now.
    pub(super) fn is_bare(&self) -> bool {
        self.sasl == State::AuthenticateBare
    }

    /// Answers such a frame; `None` for a wrong password, which ends the connection.
    pub(super) fn authenticate_bare(&mut self, message: &[u8]) -> Option<Pending> {
        if !self.is_right(message) {
            return None;
        }
        self.sasl = State::Admitted;
        Some(Box::new(|_| {
            Answer::Send(vec![Bytes::from_static(EMPTY_FRAME)])
        }))
    }

    /// Whether a message of the mechanism has the token: authorization identity, user and password,
    /// each ended by a zero but the last.
    fn is_right(&self, message: &[u8]) -> bool {
        let password = message.splitn(3, |byte| *byte == 0).nth(2);
        let token = self.shared.token.as_ref();
        token.is_none_or(|token| password.is_some_and(|shown| token.is(shown)))
    }
}
