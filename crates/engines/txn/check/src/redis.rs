//! A database behind Redis' protocol, so that the same clients can drive it and the same judges
//! judge it. It has what Redis' commands have: rows by their keys, and no scans or procedures.
//!
//! A transaction watches every key that it reads and keeps its writes until the end. `EXEC` then
//! writes them, and refuses if a watched key has changed: so all reads and writes are as of the
//! `EXEC`. Operations in one request that read nothing before they write are sent as one `MULTI`.

use std::collections::BTreeMap;
use std::time::Duration;

use dyno_redis::{Client, RedisError, Value};
use dyno_txn_api::{
    Answer, Change, Code, Committed, Database, Description, Error, Key, Operation, Operations,
    Options, Request, Result, Row, Table, TableDef, TableId, Timestamp, Transaction,
};
use parking_lot::Mutex;

/// How long a client waits for a reply before it takes its connection for dead.
const PATIENCE: Duration = Duration::from_secs(5);

/// A database at the address of a server of Redis' protocol. One transaction runs at a time.
pub struct RedisDatabase {
    address: String,
    /// A connection without a transaction; `None` while one is under way, and after one broke.
    idle: Mutex<Option<Client>>,
    tables: Mutex<Vec<Table>>,
}

impl RedisDatabase {
    /// Connects to `HOST:PORT`.
    ///
    /// # Errors
    /// [`Code::Unavailable`] if nothing listens there.
    pub fn connect(address: &str) -> Result<RedisDatabase> {
        let client = Client::connect(address, PATIENCE).map_err(unavailable)?;
        Ok(RedisDatabase {
            address: address.to_owned(),
            idle: Mutex::new(Some(client)),
            tables: Mutex::default(),
        })
    }

    fn client(&self) -> Result<Client> {
        match self.idle.lock().take() {
            Some(client) => Ok(client),
            None => Client::connect(&*self.address, PATIENCE).map_err(unavailable),
        }
    }

    fn start(&self) -> Result<RedisTransaction<'_>> {
        Ok(RedisTransaction {
            client: self.client()?,
            database: self,
            rows: BTreeMap::new(),
            writes: BTreeMap::new(),
        })
    }

    /// Runs commands between `MULTI` and `EXEC`. `None` if a watched key has changed.
    fn exec(&self, mut client: Client, commands: &[Vec<Vec<u8>>]) -> Result<Option<Vec<Value>>> {
        client.push(&["MULTI"]);
        commands.iter().for_each(|command| client.push(command));
        client.push(&["EXEC"]);
        let mut run = || {
            client.send()?;
            for _ in 0..=commands.len() {
                client.reply()?;
            }
            client.reply()
        };
        // Once EXEC may have been sent, an error does not say whether it took effect.
        let reply = run().map_err(|error| Error::new(Code::OutcomeUnknown, error))?;
        *self.idle.lock() = Some(client);
        match reply {
            Value::Null => Ok(None),
            // Beside a command that failed, the others were carried out.
            Value::Array(replies) => match replies.iter().find(|reply| is_error(reply)) {
                None => Ok(Some(replies)),
                Some(error) => Err(strange(error)),
            },
            other => Err(strange(&other)),
        }
    }
}

impl Database for RedisDatabase {
    fn create_table(&self, def: &TableDef) -> Result<TableId> {
        let mut tables = self.tables.lock();
        if let Some(table) = tables.iter().find(|table| table.def.name == def.name) {
            return Ok(table.id);
        }
        // Only a part of the keys, so every client may number the tables that it makes.
        let id = TableId(tables.len() as u32 + 1);
        let def = def.clone();
        tables.push(Table { id, def });
        Ok(id)
    }

    fn tables(&self) -> Result<Vec<Table>> {
        Ok(self.tables.lock().clone())
    }

    fn begin(&self, _: &Options) -> Result<Box<dyn Transaction + '_>> {
        Ok(Box::new(self.start()?))
    }

    fn execute(&self, request: Request, options: &Options) -> Result<Committed> {
        let Request::Operations(operations) = request else {
            return Err(not_supported("procedures"));
        };
        let commands: Option<Vec<_>> = operations.iter().map(command).collect();
        let answers = match commands {
            Some(commands) => {
                let replies = self.exec(self.client()?, &commands)?;
                // Nothing is watched.
                let replies = replies.ok_or_else(|| strange(&Value::Null))?;
                let answers = operations.iter().zip(replies);
                let answers = answers.map(|(operation, reply)| answer(operation, reply));
                answers.collect::<Result<_>>()?
            }
            None => {
                let mut transaction = self.begin(options)?;
                let answers = transaction.run(&operations)?;
                transaction.commit()?;
                answers
            }
        };
        Ok(Committed {
            timestamp: None,
            answers,
            returned: Vec::new(),
        })
    }

    fn describe(&self) -> Result<Description> {
        Ok(Description {
            engine: "redis' protocol".to_owned(),
            isolation: "strict serializable".to_owned(),
            durability: "the server's".to_owned(),
            partitions: 1,
            procedures: false,
        })
    }

    fn stats(&self) -> Result<Vec<(String, u64)>> {
        Ok(Vec::new())
    }

    fn as_database(&self) -> &dyn Database {
        self
    }
}

/// A transaction. If it is dropped, so is its connection, and with it what is watched.
struct RedisTransaction<'a> {
    client: Client,
    database: &'a RedisDatabase,
    /// What the rows are that were read or written, for this transaction.
    rows: BTreeMap<Key, Option<Vec<u8>>>,
    writes: BTreeMap<Key, Option<Vec<u8>>>,
}

impl RedisTransaction<'_> {
    /// Watches and reads rows in one round trip. The server runs both as one transaction.
    fn load(&mut self, keys: Vec<Key>) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let names = || keys.iter().map(name);
        for word in ["WATCH", "MGET"] {
            let words: Vec<_> = [word.into()].into_iter().chain(names()).collect();
            self.client.push(&words);
        }
        self.client.send().map_err(unavailable)?;
        self.client.reply().map_err(unavailable)?;
        let Value::Array(values) = self.client.reply().map_err(unavailable)? else {
            return Err(strange(&Value::Null));
        };
        for (key, value) in keys.into_iter().zip(values) {
            self.rows.insert(key, stored(value)?);
        }
        Ok(())
    }

    fn write(&mut self, key: &Key, change: &Change) -> Result<()> {
        let old = self.rows.get(key).and_then(Option::as_ref);
        let new = match (change, old) {
            (Change::Put(new), _) | (Change::Insert(new), None) => Some(new.clone()),
            (Change::Insert(_), Some(_)) => {
                return Err(Error::new(Code::AlreadyExists, "there is a row"));
            }
            (Change::Delete, _) => None,
            (Change::Update(columns), Some(old)) => Some(Row::parse(old)?.update(columns)?),
            (Change::Update(_), None) => return Err(Error::new(Code::NotFound, "there is no row")),
        };
        self.rows.insert(key.clone(), new.clone());
        self.writes.insert(key.clone(), new);
        Ok(())
    }
}

impl Operations for RedisTransaction<'_> {
    fn run(&mut self, operations: &[Operation]) -> Result<Vec<Answer>> {
        let read = operations.iter().filter_map(|operation| match operation {
            Operation::Get(key) | Operation::Write(key, Change::Insert(_) | Change::Update(_)) => {
                Some(key)
            }
            _ => None,
        });
        let mut keys: Vec<Key> = read
            .filter(|key| !self.rows.contains_key(key))
            .cloned()
            .collect();
        keys.sort_unstable();
        keys.dedup();
        self.load(keys)?;
        let each = operations.iter().map(|operation| match operation {
            Operation::Get(key) => Ok(Answer::Value(self.rows.get(key).cloned().flatten())),
            Operation::Write(key, change) => self.write(key, change).map(|()| Answer::Done),
            Operation::Scan(_) => Err(not_supported("scans")),
        });
        each.collect()
    }

    fn table(&mut self, name: &str) -> Result<TableId> {
        Ok(self.database.table(name)?.id)
    }
}

impl Transaction for RedisTransaction<'_> {
    fn commit(self: Box<Self>) -> Result<Option<Timestamp>> {
        let writes = self.writes.iter();
        let commands: Vec<_> = writes
            .map(|(key, value)| write(key, value.as_deref()))
            .collect();
        match self.database.exec(self.client, &commands)? {
            Some(_) => Ok(None),
            None => Err(Error::new(
                Code::Conflict,
                "a key that was read has changed",
            )),
        }
    }

    fn rollback(mut self: Box<Self>) -> Result<()> {
        self.client.ask(&["UNWATCH"]).map_err(unavailable)?;
        *self.database.idle.lock() = Some(self.client);
        Ok(())
    }
}

/// The key of a row, as Redis has it.
fn name(key: &Key) -> Vec<u8> {
    [key.table.0.to_string().as_bytes(), b":", &key.bytes].concat()
}

fn write(key: &Key, value: Option<&[u8]>) -> Vec<Vec<u8>> {
    match value {
        Some(value) => vec!["SET".into(), name(key), value.to_vec()],
        None => vec!["DEL".into(), name(key)],
    }
}

/// The command for an operation that needs to know nothing before it.
fn command(operation: &Operation) -> Option<Vec<Vec<u8>>> {
    match operation {
        Operation::Get(key) => Some(vec!["GET".into(), name(key)]),
        Operation::Write(key, Change::Put(value)) => Some(write(key, Some(value))),
        Operation::Write(key, Change::Delete) => Some(write(key, None)),
        _ => None,
    }
}

fn answer(operation: &Operation, reply: Value) -> Result<Answer> {
    match operation {
        Operation::Get(_) => Ok(Answer::Value(stored(reply)?)),
        _ => Ok(Answer::Done),
    }
}

fn is_error(reply: &Value) -> bool {
    matches!(reply, Value::Error(_))
}

fn stored(reply: Value) -> Result<Option<Vec<u8>>> {
    match reply {
        Value::Bulk(bytes) => Ok(Some(bytes)),
        Value::Null => Ok(None),
        other => Err(strange(&other)),
    }
}

fn strange(reply: &Value) -> Error {
    // The command may have had an effect, whatever this is.
    Error::new(
        Code::OutcomeUnknown,
        format!("the server answered {reply:?}"),
    )
}

fn unavailable(error: RedisError) -> Error {
    Error::new(Code::Unavailable, error)
}

fn not_supported(what: &str) -> Error {
    let text = format!("Redis' protocol has no {what}");
    Error::new(Code::NotSupported, text)
}
