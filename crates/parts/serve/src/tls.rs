//! TLS settings from PEM files, for listeners and for their clients.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::error::ServeError;

/// Settings of a listener with the certificate chain and key in two PEM files.
///
/// # Errors
/// [`ServeError::Tls`] with the file.
pub fn server(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, ServeError> {
    listener(certificate, key, None)
}

/// The same, and clients need a certificate that is signed by one of the roots in a third file.
///
/// # Errors
/// [`ServeError::Tls`] with the file.
pub fn server_for(
    roots: &Path,
    certificate: &Path,
    key: &Path,
) -> Result<Arc<ServerConfig>, ServeError> {
    listener(certificate, key, Some(roots))
}

fn listener(
    certificate: &Path,
    key: &Path,
    clients: Option<&Path>,
) -> Result<Arc<ServerConfig>, ServeError> {
    let chain = certificates(certificate)?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| bad(key, error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(certificate, error))?;
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let roots = Arc::new(roots_in(path)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                .build()
                .map_err(|error| bad(path, error))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let config = builder
        .with_single_cert(chain, secret)
        .map_err(|error| bad(key, error))?;
    Ok(Arc::new(config))
}

fn roots_in(path: &Path) -> Result<RootCertStore, ServeError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(path)? {
        store.add(certificate).map_err(|error| bad(path, error))?;
    }
    Ok(store)
}

/// Settings of a client that trusts the roots in a PEM file, and nothing else.
///
/// # Errors
/// [`ServeError::Tls`] with the file.
pub fn client(roots: &Path) -> Result<Arc<ClientConfig>, ServeError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(roots, error))?
        .with_root_certificates(roots_in(roots)?)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ServeError> {
    let all = CertificateDer::pem_file_iter(path).map_err(|error| bad(path, error))?;
    let all: Vec<_> = all
        .collect::<Result<_, _>>()
        .map_err(|error| bad(path, error))?;
    // The parser accepts a file without certificates, so the error is raised here, where the file
    // can be named.
    if all.is_empty() {
        return Err(bad(path, "there is no certificate in it"));
    }
    Ok(all)
}

fn bad(path: &Path, reason: impl ToString) -> ServeError {
    ServeError::Tls {
        path: path.to_path_buf(),
        reason: reason.to_string(),
    }
}
