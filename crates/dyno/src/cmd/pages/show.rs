//! The answer to `status` as a person reads it: what an operator asks first comes first, with
//! units.

use std::time::Duration;

use dyno_report::counted;
use serde_json::Value;

use super::memory::shown;
use super::pager;

/// A group of lines under a name.
struct Group {
    text: String,
}

impl Group {
    fn line(&mut self, name: &str, what: impl AsRef<str>) {
        self.text += &format!("{name:<12} {}\n", what.as_ref());
    }
}

/// The answer to `status` as lines of text.
pub fn status(all: &Value) -> String {
    let mut out = Group {
        text: String::new(),
    };
    if word(&all["front"]) == pager::FRONT {
        add_pager(all, &mut out);
        return out.text;
    }
    add_store(all, &mut out);
    add_memory(all, &mut out);
    add_pages(all, &mut out);
    add_use(all, &mut out);
    out.text
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn bytes(value: &Value) -> String {
    shown(number(value))
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

fn add_pager(all: &Value, out: &mut Group) {
    let (name, pid) = (word(&all["name"]), number(&all["process"]["pid"]));
    out.line("pager", format!("{name}, process {pid}"));
    out.line("socket", word(&all["address"]));
    let holder = match all["holder"].as_bool() {
        Some(true) => "alive",
        _ => "DEAD: microVMs would not survive this process",
    };
    out.line("holder", holder);
    if let Some(metrics) = all["metrics"].as_str() {
        out.line("metrics", format!("http://{metrics}/metrics"));
    }
    let (size, packed) = (bytes(&all["size_bytes"]), bytes(&all["resident_bytes"]));
    let beside = bytes(&all["beside_bytes"]);
    out.line("snapshot", word(&all["snapshot"]));
    out.line("size", format!("{size}, packed {packed}, {beside} beside"));
    let ahead = match all["working_set"]["pages"].as_u64() {
        Some(pages) => format!("{pages} pages are brought ahead"),
        None if all["working_set"]["file"].is_null() => "off".to_string(),
        None => "not recorded yet".to_string(),
    };
    out.line("working set", ahead);
    let served = &all["served"];
    let count = |name: &str| number(&served[name]);
    out.line(
        "served",
        format!(
            "{}, {} refused; {} pages by faults, {} ahead, {} of them zeros",
            counted(number(&all["restores"]), "microVM"),
            number(&all["refused"]),
            count("placed_pages"),
            count("prefetched_pages"),
            count("zero_pages"),
        ),
    );
    let damaged = count("poisoned_pages");
    out.line(
        "damage",
        match damaged {
            0 => "none".to_string(),
            pages => format!("{pages} touches of damaged pages; the log names them"),
        },
    );
    for machine in all["machines"].as_array().into_iter().flatten() {
        let served = Duration::from_secs(number(&machine["served_ms"]) / 1000);
        out.line(
            "microVM",
            format!(
                "{}, process {}, {}, for {served:?}{}",
                number(&machine["number"]),
                number(&machine["pid"]),
                bytes(&machine["size_bytes"]),
                match machine["taken_over"].as_bool() {
                    Some(true) => ", taken over",
                    _ => "",
                }
            ),
        );
    }
}

fn add_store(all: &Value, out: &mut Group) {
    let process = &all["process"];
    out.line(
        "store",
        format!(
            "{}, process {}",
            word(&all["name"]),
            number(&process["pid"])
        ),
    );
    match word(&all["front"]) {
        "nbd" => out.line("address", format!("{} (NBD)", word(&all["address"]))),
        front => {
            let at = match all["mounted_at"].as_str() {
                Some(at) => format!("mounted at {at}"),
                None => "not mounted".to_string(),
            };
            out.line(
                "device",
                format!("{} ({front}), {at}", word(&all["device"])),
            );
            out.line(
                "holder",
                match all["holder"].as_bool() {
                    Some(true) => "alive",
                    _ => "DEAD: the pages go with the process that serves them",
                },
            );
        }
    }
    if let Some(metrics) = all["metrics"].as_str() {
        out.line("metrics", format!("http://{metrics}/metrics"));
    }
    let share = if all["share"] == true {
        ", equal pages share"
    } else {
        ""
    };
    let codec = format!(
        "{}, zstd level {}{share}",
        word(&all["codec"]),
        number(&all["level"])
    );
    out.line("codec", codec);
    out.line("size", bytes(&all["size_bytes"]));
    let (limit, used) = (number(&all["limit_bytes"]), number(&all["slot_bytes"]));
    let percent = if limit == 0 {
        0.0
    } else {
        used as f64 * 100.0 / limit as f64
    };
    out.line(
        "limit",
        format!(
            "{}, {percent:.1}% in use by pages ({})",
            shown(limit),
            shown(used)
        ),
    );
}

fn add_memory(all: &Value, out: &mut Group) {
    out.line(
        "memory",
        format!(
            "{} for pages and index, {} beside; {} of pages for each byte of it",
            bytes(&all["resident_bytes"]),
            bytes(&all["beside_bytes"]),
            all["ratio"]
                .as_f64()
                .map_or("-".to_string(), |ratio| format!("{ratio:.2} bytes")),
        ),
    );
    if let Some(resident) = all["process"]["resident_bytes"].as_u64() {
        out.line(
            "process",
            format!("{} resident, all of that included", shown(resident)),
        );
    }
    if let Some(file) = all.get("backing") {
        let direct = if file["direct"] == true {
            ""
        } else {
            ", through the page cache"
        };
        out.line(
            "file",
            format!(
                "{}, {} of {} in use{direct}, {} times refused",
                word(&file["file"]),
                bytes(&file["used_bytes"]),
                bytes(&file["size_bytes"]),
                number(&file["kept_back_pages"])
            ),
        );
    }
}

fn add_pages(all: &Value, out: &mut Group) {
    out.line(
        "pages",
        format!(
            "{} stored of {}",
            number(&all["stored_pages"]),
            number(&all["pages"])
        ),
    );
    for (kind, what) in [
        ("repeated", "of bytes that repeat"),
        ("lz4", "packed by LZ4"),
        ("zstd", "packed again, or by zstd"),
        ("raw", "that nothing packs"),
        ("file", "in the file"),
    ] {
        let pages = number(&all[kind]["pages"]);
        if pages > 0 {
            let bytes = bytes(&all[kind]["bytes"]);
            out.line("", format!("{pages} {what}, {bytes}"));
        }
    }
    if number(&all["shared_pages"]) > 0 {
        let shared = number(&all["shared_pages"]);
        out.line("", format!("{shared} share another page's memory"));
    }
    let ages: Vec<String> = all["pages_by_age"]
        .as_array()
        .map(|ages| ages.iter().map(|count| number(count).to_string()).collect())
        .unwrap_or_default();
    out.line(
        "",
        format!(
            "not touched for 0, 1, 2 and more passes: {}",
            ages.join(", ")
        ),
    );
    let corrupt = &all["corrupt"];
    let text = match (number(&corrupt["pages"]), number(&corrupt["entries"])) {
        (0, 0) => "none".to_string(),
        (pages, entries) => format!(
            "{pages} pages met damaged, {entries} entries damaged now, {} reads refused; the log names them",
            number(&corrupt["reads"])
        ),
    };
    out.line("damage", text);
}

fn add_use(all: &Value, out: &mut Group) {
    out.line(
        "reads",
        format!("{}, {}", number(&all["reads"]), bytes(&all["read_bytes"])),
    );
    out.line(
        "writes",
        format!(
            "{}, {}; {} refused for want of space",
            number(&all["writes"]),
            bytes(&all["written_bytes"]),
            number(&all["refused_pages"])
        ),
    );
    if let Some(clients) = all.get("clients") {
        out.line(
            "clients",
            format!(
                "{} of {} connected; since the start {} refused, {} broken, {} too slow or idle, {} silent ones displaced",
                number(&clients["connected"]),
                number(&clients["most"]),
                number(&clients["refused"]),
                number(&clients["broken"]),
                number(&clients["late"]),
                number(&clients["displaced"])
            ),
        );
    }
    let work = &all["background"];
    let state = if work["running"] == true {
        "running"
    } else {
        "NOT RUNNING"
    };
    let idle = Duration::from_millis(number(&work["idle_ms"]));
    out.line(
        "background",
        format!(
            "{state}: pages idle after {idle:?}, {:.0}% of a processor, {} passes, {} packed again, {} written back",
            work["cpu"].as_f64().unwrap_or(0.0) * 100.0,
            number(&work["passes"]),
            number(&work["packed_pages"]),
            number(&work["written_back_pages"])
        ),
    );
    if let Some(why) = work["last_failure"].as_str() {
        let failures = number(&work["failures"]);
        out.line("", format!("{failures} steps failed, the last one: {why}"));
    }
}
