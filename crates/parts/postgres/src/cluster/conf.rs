//! The files that configure a server: `dyno.conf`, the access rules, and the line in
//! `postgresql.conf` that includes the first. They are rewritten at each start.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::{Cluster, Role, SUPERUSER};
use crate::advice;
use crate::dsn::Dsn;
use crate::error::PgError;
use crate::machine_size::MachineSize;
use crate::os::replace_file;
use crate::standby::slot_of;

const HEAD: &str = "\
# Written by dyno at each start, from the machine's size; changes in this file are lost.
# Settings of your own: ALTER SYSTEM SET, which wins over this file.
";
const INCLUDE: &str = "include 'dyno.conf'";

impl Cluster {
    /// Writes every file, before a start or a reload. Repeating it changes nothing.
    pub(super) fn write_conf(&self) -> Result<(), PgError> {
        let data = self.home.data();
        replace_file(&self.home.conf(), &self.conf()?, Some(&self.owner))?;
        let rules = access_rules(self.options.listen.is_some());
        replace_file(&data.join("pg_hba.conf"), &rules, Some(&self.owner))?;
        // A data directory copied from a packaged server has neither file.
        let idents = data.join("pg_ident.conf");
        if !idents.exists() {
            replace_file(&idents, "", Some(&self.owner))?;
        }
        include(&data.join("postgresql.conf"), &self.owner)
    }

    /// The machine that the cluster is set up for.
    pub(super) fn size(&self) -> MachineSize {
        match &self.options.size {
            Some(size) => size.clone(),
            None => MachineSize::with_disk_of(&self.home.dir),
        }
    }

    fn conf(&self) -> Result<String, PgError> {
        let mut text = HEAD.to_owned();
        let size = self.size();
        for advice in advice::settings(&size, self.installation.has_lz4()) {
            let _ = writeln!(text, "\n# {}", advice.why);
            line(&mut text, advice.name, &advice.value);
        }
        text.push_str("\n# Where it is reached.\n");
        let socket_dir = self.identity.socket_dir.display();
        line(
            &mut text,
            "unix_socket_directories",
            &format!("\"{socket_dir}\""),
        );
        line(&mut text, "port", &self.identity.port.to_string());
        let listen = self.options.listen.as_ref();
        let address = listen.map_or("", |listen| listen.address.as_str());
        line(&mut text, "listen_addresses", address);
        text.push_str("\n# Replication.\n");
        let synchronous = self.identity.synchronous.to_string();
        line(&mut text, "synchronous_standby_names", &synchronous);
        if let Role::Standby { name, primary } = &self.identity.role {
            let primary = Dsn::parse(primary)?.conninfo(Some(name));
            line(&mut text, "primary_conninfo", &primary);
            line(&mut text, "primary_slot_name", &slot_of(name));
        }
        if !self.options.settings.is_empty() {
            text.push_str("\n# Asked for by the caller.\n");
        }
        for (name, value) in &self.options.settings {
            line(&mut text, name, value);
        }
        Ok(text)
    }
}

/// One setting; a quote and a backslash are doubled ("Parameter Interaction via the Configuration
/// File").
fn line(text: &mut String, name: &str, value: &str) {
    let value = value.replace('\\', "\\\\").replace('\'', "''");
    let _ = writeln!(text, "{name} = '{value}'");
}

/// The socket is guarded by its directory's mode; clients over TCP need the password.
fn access_rules(tcp: bool) -> String {
    let mut text = String::from("# Written by dyno at each start.\n");
    text.push_str("local all all trust\nlocal replication all trust\n");
    if tcp {
        text.push_str("host all all all scram-sha-256\n");
        let _ = writeln!(text, "host replication {SUPERUSER} all scram-sha-256");
    }
    text
}

/// Appends our include line unless it is there. It is the last one, so it overrides what initdb
/// wrote.
fn include(path: &Path, owner: &crate::os::Owner) -> Result<(), PgError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(PgError::io("read", path)(error)),
    };
    if text.lines().any(|line| line.trim() == INCLUDE) {
        return Ok(());
    }
    replace_file(path, &format!("{text}\n{INCLUDE}\n"), Some(owner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted() {
        let mut text = String::new();
        line(&mut text, "a", r"it's \ here");
        assert_eq!(text, "a = 'it''s \\\\ here'\n");
    }
}
