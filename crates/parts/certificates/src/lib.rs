//! Certificates for tests of TLS: two unrelated roots, and certificates that the first one signed
//! for a server called `localhost` and for a client. The program `openssl` makes them, so that our
//! TLS meets files that it did not write. The files have the names that clients of NBD look for in
//! a folder.

use std::path::{Path, PathBuf};
use std::process::Command;

const KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
const SIGNED: &str = "-CA ca-cert.pem -CAkey ca-key.pem -CAcreateserial -days 2";

/// A folder with certificates and keys in PEM.
#[derive(Debug, Clone)]
pub struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    /// Makes the files in `folder`, which must exist. Without `openssl` it prints that the test of
    /// `what` is skipped, and why.
    pub fn make(folder: &Path, what: &str) -> Option<Self> {
        let certificates = Self {
            folder: folder.to_owned(),
        };
        match certificates.run_openssl() {
            Ok(()) => Some(certificates),
            Err(why) => {
                println!("skipped: {what}: no certificates: {why}");
                None
            }
        }
    }

    /// The root that signed the certificates of the server and of the client.
    pub fn root(&self) -> PathBuf {
        self.folder.join("ca-cert.pem")
    }

    /// A root that signed neither of them, so clients that trust it alone must refuse the server.
    pub fn other_root(&self) -> PathBuf {
        self.folder.join("other-cert.pem")
    }

    /// The server's certificate, valid for the name `localhost` alone.
    pub fn server(&self) -> PathBuf {
        self.folder.join("server-cert.pem")
    }

    /// The private key that belongs to [`Certificates::server`].
    pub fn server_key(&self) -> PathBuf {
        self.folder.join("server-key.pem")
    }

    fn run_openssl(&self) -> Result<(), String> {
        let names = self.folder.join("names");
        std::fs::write(&names, "subjectAltName=DNS:localhost\n")
            .map_err(|error| format!("{}: {error}", names.display()))?;
        for name in ["ca", "other"] {
            self.openssl(&format!(
                "req -x509 {KEY} -days 2 -subj /CN={name} -keyout {name}-key.pem -out {name}-cert.pem"
            ))?;
        }
        for (name, subject) in [("server", "localhost"), ("client", "client")] {
            self.openssl(&format!(
                "req {KEY} -subj /CN={subject} -keyout {name}-key.pem -out {name}.csr"
            ))?;
            // A certificate without extensions has version 1, which our TLS refuses.
            self.openssl(&format!(
                "x509 -req -in {name}.csr {SIGNED} -extfile names -out {name}-cert.pem"
            ))?;
        }
        Ok(())
    }

    fn openssl(&self, line: &str) -> Result<(), String> {
        let mut command = Command::new("openssl");
        command
            .args(line.split_whitespace())
            .current_dir(&self.folder);
        let output = command
            .output()
            .map_err(|error| format!("openssl: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        Err(format!("openssl {line}: {}", stderr.trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_are_there_and_the_root_vouches_for_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(made) = Certificates::make(folder.path(), "certificates") else {
            return;
        };
        assert!(made.server_key().exists());
        let vouched = |root: PathBuf| {
            let mut verify = Command::new("openssl");
            verify.arg("verify").arg("-CAfile").arg(root);
            let verified = verify.arg(made.server()).output().expect("openssl");
            verified.status.success()
        };
        assert!(vouched(made.root()));
        assert!(!vouched(made.other_root()));
    }

    #[test]
    fn a_folder_that_is_not_there_is_no_reason_to_panic() {
        let folder = tempfile::tempdir()
            .expect("a folder")
            .path()
            .join("nowhere");
        let reason = Certificates { folder }
            .run_openssl()
            .expect_err("no folder");
        assert!(reason.contains("nowhere"), "{reason}");
    }
}
