//! Creates the database and the tables that a load needs.

use std::sync::Arc;

use crate::address::Address;
use crate::error::{Error, Result};
use crate::http::{Client, quoted};
use crate::ledger::Ledger;
use crate::quarantine;
use crate::schema::{self, Contract};
use crate::table::Settings;

/// Creates the database if it is missing and the user is allowed to.
pub(crate) fn make_databases(
    clients: &[Arc<Client>],
    address: &Address,
    settings: &Settings,
) -> Result<()> {
    if clients.len() > 1 && settings.cluster.is_none() {
        return Err(Error::Address {
            reason: "it names several servers, which are the shards of a cluster: say of which one"
                .to_owned(),
        });
    }
    for client in clients {
        let sql = format!(
            "SELECT count() FROM system.databases WHERE name = {}",
            quoted(&address.database)
        );
        if client.number("look for the database", &sql)? == 0 {
            let sql = format!("CREATE DATABASE IF NOT EXISTS {}", address.database);
            client.query("make the database", &sql)?;
        }
    }
    Ok(())
}

/// Creates the tables that are missing, and returns the name of the one with the rows.
pub(crate) fn make_tables(
    clients: &[Arc<Client>],
    address: &Address,
    settings: &Settings,
    contract: &Contract,
) -> Result<String> {
    let home = &clients[0];
    Ledger::make(home, &address.full_name("_ledger"))?;
    let quarantine = quarantine::create(&address.full_name("_quarantine"));
    home.query("make the table of bad rows", &quarantine)?;
    let action = "make the table";
    let Some(cluster) = &settings.cluster else {
        let sql = schema::create(
            contract,
            &address.full_name(""),
            "",
            settings.dictionary_types,
        );
        schema::make(home, action, &sql)?;
        return Ok(address.table.clone());
    };
    if !cluster
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    {
        return Err(Error::Address {
            reason: "the cluster's name has strange characters".to_owned(),
        });
    }
    let sql = format!(
        "SELECT count() FROM system.clusters WHERE cluster = {}",
        quoted(cluster)
    );
    let hosts = home.number("look for the cluster", &sql)?;
    if hosts == 0 {
        return Err(Error::Schema {
            table: address.full_name(""),
            reason: format!("{} knows no cluster {cluster}", home.server),
        });
    }
    let local = format!("{}_local", address.table);
    let local_as = |on_cluster: &str| {
        let name = address.full_name("_local");
        schema::create(contract, &name, on_cluster, settings.dictionary_types)
    };
    let distributed = |on_cluster: &str| {
        format!(
            "CREATE TABLE IF NOT EXISTS {table}{on_cluster} AS {table}_local \
             ENGINE = Distributed({cluster}, {}, {local}, rand())",
            address.database,
            table = address.full_name(""),
        )
    };
    // ON CLUSTER needs a coordinator. Without one, the statement is sent to each server.
    let sql = "SELECT count() FROM system.tables WHERE database = 'system' AND name = 'zookeeper'";
    if home.number("look for a coordinator", sql)? > 0 {
        let on_cluster = format!(" ON CLUSTER {cluster}");
        schema::make(home, action, &local_as(&on_cluster))?;
        schema::make(home, action, &distributed(&on_cluster))?;
    } else {
        for client in clients {
            schema::make(client, action, &local_as(""))?;
            schema::make(client, action, &distributed(""))?;
        }
    }
    Ok(local)
}
