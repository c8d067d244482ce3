//! What a connection begins with: versions, and who the client is.

use bytes::Bytes;

use super::{api, structure};

structure! {
    /// Asks which APIs the server has. Always the first request.
    ApiVersionsRequest {
        /// The name of the client's library.
        client_software_name: String, since 3;
        client_software_version: String, since 3;
    }
}

structure! {
    /// One API and its versions.
    ApiVersion {
        /// The number of the API.
        api_key: i16;
        min_version: i16;
        max_version: i16;
    }
}

structure! {
    /// The APIs of the server.
    ApiVersionsResponse {
        /// 0, or why the request was refused.
        error_code: i16;
        api_keys: Vec<ApiVersion>;
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32, since 1;
    }
}

api!(ApiVersionsRequest -> ApiVersionsResponse, 18, 0..=3, flexible 3);

structure! {
    SaslHandshakeRequest {
        /// The mechanism, of which `PLAIN` is offered.
        mechanism: String;
    }
}

structure! {
    /// Whether the mechanism is offered.
    SaslHandshakeResponse {
        /// 0, or that it is not.
        error_code: i16;
        mechanisms: Vec<String>;
    }
}

// After version 0 the bytes of the mechanism follow without a header.
api!(SaslHandshakeRequest -> SaslHandshakeResponse, 17, 0..=1, flexible 2);

structure! {
    SaslAuthenticateRequest {
        /// As the mechanism defines them.
        auth_bytes: Bytes;
    }
}

structure! {
    /// Whether the client is admitted.
    SaslAuthenticateResponse {
        /// 0, or that it is not.
        error_code: i16;
        error_message: Option<String>;
        auth_bytes: Bytes;
        /// Always 0: a session does not end by itself.
        session_lifetime_ms: i64, since 1;
    }
}

api!(SaslAuthenticateRequest -> SaslAuthenticateResponse, 36, 0..=2, flexible 2);
