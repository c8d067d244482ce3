// Judges a history of transactions with porcupine, a checker of linearizability by exhaustive search.
//
//	go run . HISTORY.json
//
// HISTORY.json comes from `dyno txn check export --format elle-json`. A database is strictly
// serializable when it is linearizable as one object: each transaction is one operation on the state
// of all rows, and takes effect at one moment between its request and its answer.
//
// Prints one line of JSON. Exits 0 when an order was found, 4 when there is none, 3 when the search
// took too long, 2 when the history cannot be read.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

const patience = 5 * time.Minute

// unwritten is the version of a read that returned bytes which no transaction wrote. No state has it.
const unwritten = math.MaxUint64

// line is one object of the history.
type line struct {
	Type    string              `json:"type"`
	Process uint64              `json:"process"`
	Time    int64               `json:"time"`
	Value   [][]json.RawMessage `json:"value"`
}

// step is what a transaction did to one row. A list is represented by a hash of its elements, so that
// a state has one number for each row of either kind.
type step struct {
	name    string // "r", "w" or "append"
	row     int
	version uint64   // written or appended, or the version of a register that was read
	list    []uint64 // the elements that were read
	isList  bool
}

type transaction struct {
	steps   []step
	call    int64
	end     int64
	unknown bool
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run . HISTORY.json")
		os.Exit(2)
	}
	transactions, rows, err := read(os.Args[1])
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[1], err)
		os.Exit(2)
	}
	judged := settle(transactions)
	began := time.Now()
	result := porcupine.CheckOperationsTimeout(model(rows), judged, patience)
	verdict, _ := json.Marshal(map[string]any{
		"judge": "porcupine", "history": os.Args[1], "transactions": len(judged), "rows": rows,
		"seconds": math.Round(time.Since(began).Seconds()*100) / 100, "linearizable": result,
	})
	fmt.Println(string(verdict))
	switch result {
	case porcupine.Ok:
	case porcupine.Illegal:
		os.Exit(4)
	default:
		os.Exit(3)
	}
}

// read pairs the requests of a history with their ends. Transactions that failed had no effect, and
// what they would have written must never be seen: their versions are in no state, so a read of one
// has no place in any order.
func read(path string) ([]*transaction, int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, err
	}
	var lines []line
	if err := json.Unmarshal(text, &lines); err != nil {
		return nil, 0, err
	}
	rows := map[string]int{}
	open := map[uint64]int64{}
	var transactions []*transaction
	for number, line := range lines {
		if line.Type == "invoke" {
			open[line.Process] = line.Time
			continue
		}
		call, begun := open[line.Process]
		if !begun {
			return nil, 0, fmt.Errorf("object %d: process %d has not begun", number, line.Process)
		}
		delete(open, line.Process)
		if line.Type == "fail" {
			continue
		}
		made := &transaction{call: call, end: line.Time, unknown: line.Type == "info"}
		for _, value := range line.Value {
			step, err := parse(value, rows)
			if err != nil {
				return nil, 0, fmt.Errorf("object %d: %w", number, err)
			}
			made.steps = append(made.steps, step)
		}
		transactions = append(transactions, made)
	}
	if len(open) > 0 {
		return nil, 0, fmt.Errorf("%d transactions have no end", len(open))
	}
	return transactions, len(rows), nil
}

func parse(value []json.RawMessage, rows map[string]int) (step, error) {
	if len(value) != 3 {
		return step{}, fmt.Errorf("%s: expected a name, a key and a value", value)
	}
	var made step
	var key string
	if err := json.Unmarshal(value[0], &made.name); err != nil {
		return step{}, err
	}
	if err := json.Unmarshal(value[1], &key); err != nil {
		return step{}, err
	}
	if _, known := rows[key]; !known {
		rows[key] = len(rows)
	}
	made.row = rows[key]
	if json.Unmarshal(value[2], &made.list) == nil && made.list != nil {
		made.isList = true
		return made, nil
	}
	var version *uint64
	if err := json.Unmarshal(value[2], &version); err != nil {
		return step{}, err
	}
	if version != nil {
		made.version = *version
		if *version == 0 {
			made.version = unwritten
		}
	}
	return made, nil
}

// settle gives each transaction of unknown outcome an end, or leaves it out. One of whose writes
// something was read took effect before that reader's end. One of whose writes nothing was ever read
// may be taken for one that never happened, since no answer differs. Both keep the set of orders that
// explain the answers, and without them the search would not end.
func settle(transactions []*transaction) []porcupine.Operation {
	type version struct {
		row     int
		written uint64
	}
	seen := map[version]int64{}
	see := func(row int, written uint64, end int64) {
		known, before := seen[version{row, written}]
		if !before || end < known {
			seen[version{row, written}] = end
		}
	}
	for _, t := range transactions {
		for _, s := range t.steps {
			if s.name != "r" || t.unknown {
				continue
			}
			see(s.row, s.version, t.end)
			for _, element := range s.list {
				see(s.row, element, t.end)
			}
		}
	}
	var operations []porcupine.Operation
	for _, t := range transactions {
		end, observed := t.end, !t.unknown
		for _, s := range t.steps {
			if reader, read := seen[version{s.row, s.version}]; t.unknown && s.name != "r" && read {
				observed = true
				end = min(end, reader)
			}
		}
		if observed {
			operations = append(operations, porcupine.Operation{Input: t, Call: t.call, Return: max(end, t.call)})
		}
	}
	return operations
}

// model is a state of all rows: a number for each, which is 0 before the first write.
func model(rows int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return make([]uint64, rows) },
		Step: func(state, input, _ any) (bool, any) {
			return apply(state.([]uint64), input.(*transaction))
		},
		Equal: func(a, b any) bool {
			left, right := a.([]uint64), b.([]uint64)
			for row := range left {
				if left[row] != right[row] {
					return false
				}
			}
			return true
		},
		Hash: func(state any) uint64 {
			hash := uint64(1)
			for _, version := range state.([]uint64) {
				hash = extended(hash, version)
			}
			return hash
		},
	}
}

func apply(before []uint64, t *transaction) (bool, any) {
	state := append([]uint64(nil), before...)
	for _, s := range t.steps {
		switch s.name {
		case "w":
			state[s.row] = s.version
		case "append":
			state[s.row] = extended(state[s.row], s.version)
		case "r":
			// What a transaction of unknown outcome read was never told.
			if t.unknown {
				continue
			}
			expected := s.version
			if s.isList {
				expected = 0
				for _, element := range s.list {
					expected = extended(expected, element)
				}
			}
			if state[s.row] != expected {
				return false, before
			}
		}
	}
	return true, state
}

// extended is the hash of a list with one more element: splitmix64's mixing of both.
func extended(hash, element uint64) uint64 {
	mixed := hash*0x9e3779b97f4a7c15 + element + 0x632be59bd9b4e019
	mixed = (mixed ^ mixed>>30) * 0xbf58476d1ce4e5b9
	mixed = (mixed ^ mixed>>27) * 0x94d049bb133111eb
	return mixed ^ mixed>>31
}
