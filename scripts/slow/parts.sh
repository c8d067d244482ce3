# shellcheck shell=bash
# What the proofs of `dyno tpch plan` share: the tables to compare with, the comparison, and how a task
# is killed in the middle of its work. Sourced by its neighbours, after they have set what comes next.
: "${proof:?}" "${dyno:?}" "${work:?}"

sf=${SF:-0.1}
parts=6
tables=(region nation supplier customer part partsupp orders lineitem)
# Little enough for several tasks on a small machine.
small=(--sf "$sf" --threads 1 --memory 512MiB)

skip() {
    echo "skipped: $proof: $*"
    exit 0
}

fail() {
    echo "$proof: FAILED: $*" >&2
    exit 1
}

# What the parts must be: the whole tables as text, and the parts as one process writes them.
make_references() {
    "$dyno" tpch gen "${small[@]}" --format tbl --out "$work/whole" >/dev/null
    "$dyno" tpch gen "${small[@]}" --parts "$parts" --out "$work/together" >/dev/null
}

# Parts of text, one after the other, are the whole table.
check_tbl() {
    local out=$1 table wanted found
    for table in "${tables[@]}"; do
        wanted=$(sha1sum <"$work/whole/$table.tbl")
        found=$(for part in $(seq "$parts"); do cat "$out/$table/$table.$part.tbl"; done | sha1sum)
        [ "$found" = "$wanted" ] || fail "$out: the parts of $table have SHA-1 $found, the table has $wanted"
    done
    check_names "$out" tbl
    echo "$proof: TBL: $parts parts of ${#tables[@]} tables are the whole tables, by SHA-1"
}

check_parquet() {
    local out=$1 table part
    for table in "${tables[@]}"; do
        for part in $(seq "$parts"); do
            cmp "$out/$table/$table.$part.parquet" "$work/together/$table/$table.$part.parquet" ||
                fail "$out: part $part of $table differs from the one of gen --parts $parts"
        done
    done
    check_names "$out" parquet
    echo "$proof: Parquet: $((parts * ${#tables[@]})) files have the bytes of gen --parts $parts"
}

# Nothing but the parts is left: no leftover of a killed task.
check_names() {
    local count others
    count=$(find "$1" -name "*.$2" ! -name '.*' | wc -l)
    [ "$count" -eq $((parts * ${#tables[@]})) ] || fail "$1 has $count files"
    others=$(find "$1" -type f ! -path '*/.dyno-tpch/*' \( ! -name "*.$2" -o -name '.*' \))
    [ -z "$others" ] || fail "left over: $others"
}

# Kills the process that writes a part, hard, while its largest file is under way. From the first sight on
# it runs for a moment and is stopped for a look, so that it cannot finish between a look and the kill.
kill_in_the_middle() {
    local out=$1 part=$2 format=$3 pid
    local file=$out/lineitem/lineitem.$part.$format
    for _ in $(seq 3000); do
        pid=$(pgrep --full --exact "$dyno tpch gen .*--part $part/$parts .*--out $out.*" | head -n 1) || true
        [ -z "$pid" ] || break
        sleep 0.01
    done
    [ -n "$pid" ] || fail "no process began part $part within half a minute"
    while kill -STOP "$pid" 2>/dev/null && [ ! -e "$file" ]; do
        if [ -e "$out/lineitem/.lineitem.$part.$format.partial" ]; then
            kill -KILL "$pid"
            [ ! -e "$file" ] || fail "$file is half and has its final name"
            echo "$proof: killed the task of part $part in the middle of lineitem"
            return
        fi
        kill -CONT "$pid"
        sleep 0.005
    done
    kill -CONT "$pid" 2>/dev/null || true
    fail "part $part was written before it could be killed; choose a larger SF than $sf"
}
