//! TLS to a server, with certificates checked as libpq checks them for each `sslmode`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::dsn::{Dsn, SslMode};
use crate::error::PgError;

/// Where Debian and Red Hat keep the system's trusted roots.
const SYSTEM_ROOTS: [&str; 2] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
];
/// The protocol's name, which PostgreSQL 17 and later require (IANA's list of ALPN identifiers).
const ALPN: &[u8] = b"postgresql";

/// The TLS connector for a connection string; `None` if it disables TLS or has only Unix sockets.
pub(crate) fn connector(dsn: &Dsn) -> Result<Option<MakeRustlsConnect>, PgError> {
    if dsn.ssl == SslMode::Disable || dsn.is_local() {
        return Ok(None);
    }
    let bad = |reason: String| PgError::Tls {
        target: dsn.to_string(),
        reason,
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = verifier(dsn, &provider).map_err(bad)?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match (&dsn.files.certificate, &dsn.files.key) {
        (Some(certificate), Some(key)) => {
            let chain = certificates(certificate).map_err(bad)?;
            let secret = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| bad(format!("{}: {error}", key.display())))?;
            config
                .with_client_auth_cert(chain, secret)
                .map_err(|error| bad(error.to_string()))?
        }
        (None, None) => config.with_no_client_auth(),
        _ => return Err(bad("sslcert and sslkey come together".to_owned())),
    };
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(Some(MakeRustlsConnect::new(config)))
}

fn verifier(dsn: &Dsn, provider: &Arc<CryptoProvider>) -> Result<Verifier, String> {
    let root = match (dsn.ssl, &dsn.files.root) {
        (SslMode::Prefer, _) => None,
        (_, Some(root)) if root == Path::new("system") => Some(system_roots()?),
        (_, Some(root)) => Some(root.clone()),
        (SslMode::Require, None) => None,
        (_, None) => {
            let way = "name a file in sslrootcert, or say sslrootcert=system";
            return Err(format!(
                "there is no root to check the server's certificate by: {way}"
            ));
        }
    };
    let chain = match root {
        None => None,
        Some(path) => {
            let mut roots = RootCertStore::empty();
            let (added, _) = roots.add_parsable_certificates(certificates(&path)?);
            // An empty store would reject every server, with an error that does not name the file.
            if added == 0 {
                return Err(format!("{} has no certificate of use", path.display()));
            }
            let built =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
            Some(built.build().map_err(|error| error.to_string())?)
        }
    };
    Ok(Verifier {
        provider: provider.clone(),
        chain,
        names_host: dsn.ssl == SslMode::VerifyFull,
    })
}

fn system_roots() -> Result<PathBuf, String> {
    let found = SYSTEM_ROOTS
        .iter()
        .map(PathBuf::from)
        .find(|path| path.is_file());
    found.ok_or_else(|| {
        format!(
            "the system's roots are at none of {}",
            SYSTEM_ROOTS.join(", ")
        )
    })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let named = |error: rustls::pki_types::pem::Error| format!("{}: {error}", path.display());
    let all = CertificateDer::pem_file_iter(path).map_err(named)?;
    all.collect::<Result<_, _>>().map_err(named)
}

/// Checks as much of a server's certificate as the mode requires. It always checks that the server
/// holds the certificate's key.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    /// Verifies the chain to a known root. `None` checks nothing, as libpq does without a root.
    chain: Option<Arc<WebPkiServerVerifier>>,
    names_host: bool,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is checked last, so everything else was valid.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.names_host => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            cert,
            signed,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            cert,
            signed,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
