//! Keeps listeners without a token on this machine.

use std::net::SocketAddr;

use crate::error::ServeError;
use crate::token::Token;

/// Refuses an address that other machines can reach, unless there is a token. Every listener calls
/// this before it binds.
///
/// # Errors
/// [`ServeError::Unguarded`].
pub fn guard(address: SocketAddr, token: Option<&Token>) -> Result<(), ServeError> {
    // The unspecified address is every address of the machine.
    if token.is_some() || address.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    Err(ServeError::Unguarded { address })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_this_machine_only_with_a_token() {
        let token = Token::new("0123456789abcdef").unwrap();
        for (address, alone) in [
            ("127.0.0.1:1", true),
            ("127.9.9.9:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("0.0.0.0:1", false),
            ("[::]:1", false),
            ("192.168.1.5:1", false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(guard(address, None).is_ok(), alone, "{address}");
            assert!(guard(address, Some(&token)).is_ok());
        }
    }
}
