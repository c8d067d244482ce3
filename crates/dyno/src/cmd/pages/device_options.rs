//! The options with which a device was made. The holder keeps them as a note beside the memory, so
//! that a later daemon serves the same device in the same way. docs/formats/holder.md has the
//! names.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::ValueEnum;
use dyno_pages::{BackingFile, PAGE_BYTES, Schedule, Settings};
use dyno_pages_hold::HeldFile;
use serde_json::{Value, json};

use super::device::Front;
use super::memory::shown;
use super::store;
use crate::args::{CodecArg, PagesAttachArgs, WriteBackArg};

/// First of the note's names; its value is the version.
const MAGIC: &str = "dyno-pages-device";
const VERSION: u64 = 1;

/// Everything that a daemon needs and the memory itself does not hold.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceOptions {
    pub front: Front,
    pub swap: bool,
    pub null: bool,
    pub queues: u16,
    pub metrics: Option<SocketAddr>,
    pub codec: CodecArg,
    pub level: i32,
    /// Absent in notes of earlier programs, like the limit.
    size: Option<u64>,
    limit: Option<u64>,
    share: bool,
    file_pages: Option<u32>,
    write_back: Option<WriteBackArg>,
    idle: Duration,
    cpu: f64,
}

impl DeviceOptions {
    /// As `args` say, with the limit that the store was given.
    pub fn from_args(
        args: &PagesAttachArgs,
        front: Front,
        limit: u64,
    ) -> anyhow::Result<DeviceOptions> {
        Ok(DeviceOptions {
            size: Some(args.store.size),
            limit: Some(limit),
            share: args.store.share,
            front,
            swap: args.swap,
            null: args.null,
            queues: args.queues,
            metrics: args.metrics,
            codec: args.store.codec,
            level: args.store.level,
            file_pages: store::file_pages(&args.store)?,
            write_back: args.store.writeback,
            // Rounded to the milliseconds of the note, so that a comparison finds no difference.
            idle: Duration::from_millis(args.store.idle.as_millis() as u64),
            cpu: args.store.cpu,
        })
    }

    pub fn note(&self) -> Vec<u8> {
        let note = json!({
            MAGIC: VERSION,
            "front": self.front.word(),
            "swap": self.swap,
            "null": self.null,
            "queues": self.queues,
            "metrics": self.metrics.map(|at| at.to_string()),
            "codec": word(self.codec),
            "level": self.level,
            "size": self.size,
            "limit": self.limit,
            "share": self.share,
            "file_pages": self.file_pages,
            "write_back": self.write_back.map(word),
            "idle_ms": self.idle.as_millis() as u64,
            "cpu": self.cpu,
        });
        note.to_string().into_bytes()
    }

    pub fn parse(note: &[u8]) -> anyhow::Result<DeviceOptions> {
        let note: Value = serde_json::from_slice(note).context("the holder's note is not JSON")?;
        let version = note[MAGIC].as_u64();
        ensure!(
            version == Some(VERSION),
            "the holder's note has version {version:?}, this program knows {VERSION}"
        );
        let number = |name: &'static str| {
            let value = note[name].as_u64();
            value.with_context(|| format!("the holder's note has no {name}"))
        };
        let text = |name: &'static str| {
            let value = note[name].as_str();
            value.with_context(|| format!("the holder's note has no {name}"))
        };
        Ok(DeviceOptions {
            front: Front::from_word(text("front")?)?,
            swap: note["swap"] == true,
            null: note["null"] == true,
            queues: number("queues")?.try_into()?,
            metrics: match &note["metrics"] {
                Value::Null => None,
                _ => Some(text("metrics")?.parse()?),
            },
            codec: parse_value(text("codec")?)?,
            level: number("level")?.try_into()?,
            size: note["size"].as_u64(),
            limit: note["limit"].as_u64(),
            share: note["share"] == true,
            file_pages: match &note["file_pages"] {
                Value::Null => None,
                _ => Some(number("file_pages")?.try_into()?),
            },
            write_back: match &note["write_back"] {
                Value::Null => None,
                _ => Some(parse_value(text("write_back")?)?),
            },
            idle: Duration::from_millis(number("idle_ms")?),
            cpu: note["cpu"]
                .as_f64()
                .context("the holder's note has no cpu")?,
        })
    }

    /// Names the options in which `args` differ. A limit that `args` leave to its default is not
    /// compared, because the default depends on the machine.
    pub fn differences(&self, args: &PagesAttachArgs) -> Vec<String> {
        let mut all = Vec::new();
        let mut compare = |name: &str, has: String, asked: String| {
            if has != asked {
                all.push(format!("{name} is {has}, not {asked}"));
            }
        };
        let flag = |on: bool| if on { "on" } else { "off" }.to_string();
        if let Some(size) = self.size {
            compare("--size", shown(size), shown(args.store.size));
        }
        if let (Some(limit), Some(asked)) = (self.limit, args.store.limit) {
            compare("--limit", shown(limit), shown(asked));
        }
        if self.size.is_some() {
            compare("--share", flag(self.share), flag(args.store.share));
        }
        compare("--codec", word(self.codec), word(args.store.codec));
        compare(
            "--level",
            self.level.to_string(),
            args.store.level.to_string(),
        );
        compare("--swap", flag(self.swap), flag(args.swap));
        compare("--null", flag(self.null), flag(args.null));
        compare("--queues", self.queues.to_string(), args.queues.to_string());
        let at = |at: Option<SocketAddr>| at.map_or("off".to_string(), |at| at.to_string());
        compare("--metrics", at(self.metrics), at(args.metrics));
        let kind = |kind: Option<WriteBackArg>| kind.map_or("off".to_string(), word);
        compare(
            "--writeback",
            kind(self.write_back),
            kind(args.store.writeback),
        );
        let time = |time: Duration| format!("{time:?}");
        compare("--idle", time(self.idle), time(args.store.idle));
        compare("--cpu", self.cpu.to_string(), args.store.cpu.to_string());
        let pages = store::file_pages(&args.store).unwrap_or_default();
        let file = |pages: Option<u32>| {
            pages.map_or("no file".to_string(), |pages| {
                shown(u64::from(pages) * PAGE_BYTES as u64)
            })
        };
        compare("--backing", file(self.file_pages), file(pages));
        all
    }

    /// Settings of the store that is opened again, with the file for what left memory.
    pub fn settings(&self, file: Option<&HeldFile>) -> Settings {
        Settings {
            tiers: store::tiers(self.codec),
            level: self.level,
            backing: file.zip(self.file_pages).map(|(held, pages)| BackingFile {
                path: store::path_of(std::os::fd::AsFd::as_fd(&held.file)),
                pages,
            }),
            // Size and limit are those of the memory, which a reopened store reads from it.
            ..Settings::new(1, 1)
        }
    }

    pub fn has_file(&self) -> bool {
        self.file_pages.is_some()
    }

    pub fn schedule(&self) -> Schedule {
        Schedule {
            fixed: self.swap,
            ..store::schedule(self.idle, self.cpu, self.write_back)
        }
    }
}

pub fn word(value: impl ValueEnum) -> String {
    value
        .to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_string())
}

fn parse_value<T: ValueEnum>(text: &str) -> anyhow::Result<T> {
    T::from_str(text, false).map_err(|why| anyhow::anyhow!("the holder's note: {why}"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: PagesAttachArgs,
    }

    fn attach(arguments: &[&str]) -> PagesAttachArgs {
        Line::parse_from([&["attach"], arguments].concat()).args
    }

    #[test]
    fn another_size_limit_or_share_than_a_device_has_is_said() {
        let first = attach(&["--size", "32MiB"]);
        let options = DeviceOptions::from_args(&first, Front::Fuse, 64 << 20).expect("flags");
        assert_eq!(options.differences(&first), [""; 0]);
        let other = attach(&["--size", "64MiB", "--limit", "1MiB", "--share"]);
        assert_eq!(
            options.differences(&other),
            [
                "--size is 32 MiB, not 64 MiB",
                "--limit is 64 MiB, not 1 MiB",
                "--share is off, not on"
            ]
        );
    }

    #[test]
    fn a_note_comes_back_and_a_later_one_is_refused() {
        let options = DeviceOptions {
            front: Front::Ublk,
            swap: true,
            null: false,
            queues: 3,
            metrics: Some(([127, 0, 0, 1], 9).into()),
            codec: CodecArg::Zstd,
            level: 5,
            size: Some(1 << 30),
            limit: Some(1 << 20),
            share: true,
            file_pages: Some(77),
            write_back: Some(WriteBackArg::Both),
            idle: Duration::from_millis(1500),
            cpu: 0.25,
        };
        assert_eq!(
            DeviceOptions::parse(&options.note()).expect("ours"),
            options
        );
        let bare = DeviceOptions {
            metrics: None,
            file_pages: None,
            write_back: None,
            ..options
        };
        assert_eq!(DeviceOptions::parse(&bare.note()).expect("ours"), bare);
        let later = String::from_utf8(bare.note())
            .expect("text")
            .replace("\"dyno-pages-device\":1", "\"dyno-pages-device\":2");
        let refused = DeviceOptions::parse(later.as_bytes())
            .expect_err("later")
            .to_string();
        assert!(refused.contains("version Some(2)"), "{refused}");
        assert!(DeviceOptions::parse(b"{").is_err());
    }
}
