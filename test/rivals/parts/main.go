// Parts prints where the CPU time of a run of "delaybroker bench" goes, for each message: it reads what perf has
// recorded of all processes. Each sample counts for the process that it was taken in, and for the first part in its
// table that has a function of the stack.
//
//	perf record -F 997 -g -a -o bench.data -- delaybroker bench --rate 1000 --beside scheduler
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

// A sample is one stack, from its leaf on.
type sample struct {
	pid     int
	program string
	at      float64 // seconds
	stack   []string
}

func main() {
	hz := flag.Float64("hz", 997, "frequency of perf record -F")
	messages := flag.Int("messages", 10_000, "messages of one turn")
	due := flag.Float64("due", 0, "seconds from the begin of a load to the instant at which all its messages are due")
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

// read parses the output of perf script. A header begins a sample, and a blank line ends it.
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

// readHead parses "comm pid/tid seconds:". A name of a program may have spaces.
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
