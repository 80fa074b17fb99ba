// Parts divides the CPU time of a run of compare among the parts of the work, and prints the CPU time per message. It
// reads the samples that perf has recorded of all processes. Each sample counts for its process, and for
// the first part in the table "parts" that matches the stack.
//
//	go build ./test/rivals/compare
//	perf record -F 997 -g -a -o bench.data -- ./compare --rate 1000 --beside scheduler
//	perf script -i bench.data -F comm,pid,tid,time,ip,sym | go run ./test/rivals/parts -hz 997 -messages 10000
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

type sample struct {
	pid     int
	program string
	at      float64  // seconds
	stack   []string // the functions, with the innermost one first
}

func main() {
	hz := flag.Float64("hz", 997, "sampling frequency: the value of perf record -F")
	messages := flag.Int("messages", 10_000, "number of messages of one turn")
	due := flag.Float64("due", 0, "seconds from the start of a load to the common due time of its messages")
	flag.Parse()
	samples, err := read(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "parts:", err)
		os.Exit(1)
	}
	for _, turn := range turnsOf(samples) {
		turn.print(os.Stdout, 1e6/(*hz*float64(*messages)), *due)
	}
}

// read parses the output of perf script. A sample begins with a header line, and ends with a blank line.
func read(from io.Reader) (all []sample, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case line == "":
		case line[0] != '\t' && line[0] != ' ':
			s, err := readHead(line)
			if err != nil {
				return nil, err
			}
			all = append(all, s)
		case len(all) > 0:
			if words := strings.Fields(line); len(words) > 1 {
				last := &all[len(all)-1]
				last.stack = append(last.stack, words[1])
			}
		}
	}
	return all, lines.Err()
}

// readHead parses a header line: "comm pid/tid seconds:". The name of a program may contain spaces.
func readHead(line string) (s sample, err error) {
	words := strings.Fields(line)
	if len(words) < 3 {
		return s, fmt.Errorf("%q: want the output of perf script -F comm,pid,tid,time,ip,sym", line)
	}
	pid, _, _ := strings.Cut(words[len(words)-2], "/")
	if s.pid, err = strconv.Atoi(pid); err != nil {
		return s, fmt.Errorf("%q: %w", line, err)
	}
	s.program = strings.Join(words[:len(words)-2], " ")
	s.at, err = strconv.ParseFloat(strings.TrimSuffix(words[len(words)-1], ":"), 64)
	return s, err
}
