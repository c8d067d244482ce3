//! The start of a connection: whether there is room, and whether the client knows the token.

use std::collections::HashMap;
use std::fmt::Debug;

use async_trait::async_trait;
use futures::{Sink, SinkExt};
use pgwire::api::auth::{
    DefaultServerParameterProvider, ServerParameterProvider, StartupHandler, finish_authentication,
    protocol_negotiation, save_startup_parameters_to_metadata,
};
use pgwire::api::{ClientInfo, PgWireConnectionState, PidSecretKeyGenerator};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::startup::Authentication;
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};

use super::settings::VERSION;
use super::{Connection, fatal};
use crate::serve::refusal::{Kind, Refusal};

#[async_trait]
impl StartupHandler for Connection {
    async fn on_startup<C>(
        &self,
        client: &mut C,
        message: PgWireFrontendMessage,
    ) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        match message {
            PgWireFrontendMessage::Startup(ref startup) => {
                protocol_negotiation(client, startup).await?;
                save_startup_parameters_to_metadata(client, startup);
                // Said only now, because a client reads no error before it has introduced itself,
                // and because a request to cancel never comes here and must be heard.
                if !self.admitted {
                    let most = self.shared.most_connections;
                    return Err(fatal(Refusal::new(
                        Kind::TooManyConnections,
                        format!("sorry, too many clients already: there are {most} connections"),
                    )));
                }
                if self.shared.tls.is_some() && !client.is_secure() {
                    return Err(fatal(Refusal::new(
                        Kind::Unencrypted,
                        "this server speaks TLS only: connect with sslmode=require or stricter",
                    )));
                }
                if self.shared.token.is_none() {
                    return self.let_in(client).await;
                }
                client.set_state(PgWireConnectionState::AuthenticationInProgress);
                // In the clear, because a token is compared whole and is not kept as a hash. Beyond
                // this machine the connection itself is to be encrypted.
                let ask = Authentication::CleartextPassword;
                client
                    .send(PgWireBackendMessage::Authentication(ask))
                    .await?;
            }
            PgWireFrontendMessage::PasswordMessageFamily(password) => {
                let offered = password.into_password()?;
                let known = match &self.shared.token {
                    Some(token) => token.is(offered.password.as_bytes()),
                    None => true,
                };
                if !known {
                    let user = client.metadata().get("user").cloned();
                    return Err(PgWireError::InvalidPassword(user.unwrap_or_default()));
                }
                self.let_in(client).await?;
            }
            _ => {}
        }
        Ok(())
    }
}

impl Connection {
    async fn let_in<C>(&self, client: &mut C) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let (pid, secret) = self.shared.keys.generate(client);
        client.set_pid_and_secret_key(pid, secret.clone());
        let signal = self.cancelled.clone();
        self.shared
            .cancels
            .register(&self.registered, pid, &secret, signal);
        finish_authentication(client, &Parameters).await
    }
}

/// What a client is told of the server when it is let in.
struct Parameters;

impl ServerParameterProvider for Parameters {
    fn server_parameters<C>(&self, client: &C) -> Option<HashMap<String, String>>
    where
        C: ClientInfo,
    {
        let mut parameters = DefaultServerParameterProvider::default().server_parameters(client)?;
        // Clients choose by the version which questions they ask of the catalogue.
        for (name, value) in [
            ("server_version", VERSION),
            ("is_superuser", "off"),
            ("default_transaction_read_only", "on"),
            ("TimeZone", "UTC"),
        ] {
            parameters.insert(name.to_owned(), value.to_owned());
        }
        Some(parameters)
    }
}
