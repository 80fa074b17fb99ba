package message

import (
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// examples has a value for each option, as a client writes it. The value must differ from the default.
var examples = map[string]string{
	HeaderDeliver: "core", HeaderExpires: "10m", HeaderTTL: "90s", HeaderMaxAttempts: "3", HeaderRateKey: "shop-1",
}

// TestRows: each row is complete, so that the code which follows from the table finds all that it needs. An option may
// stand in each request, and an operator may change it.
func TestRows(t *testing.T) {
	tags, names := make(map[byte]bool), make(map[string]bool)
	for _, r := range table {
		if r.tag > 0 && tags[r.tag] || names[r.name] || r.in == 0 {
			t.Errorf("%s: its tag or its name is that of another row, or it has no place", r.name)
		}
		tags[r.tag], names[r.name] = true, true
		if (r.tag > 0) != (r.field != nil) {
			t.Errorf("%s has a tag without a field, or a field without a tag", r.name)
		}
		if r.parse == nil {
			continue
		}
		const everyRequest = InPlain | InTimer | InSeries
		if r.in&everyRequest != everyRequest || r.in&stored != stored || !r.edit || r.tag == 0 {
			t.Errorf("the option %s may not stand in each request and letter, cannot be edited, or has no field", r.name)
		}
	}
}

// TestOptionDuties: each option of a request survives a hop, a dead letter and an extra delivery of a series. An
// operator may set and drop it in a dead letter. Without an example, or if any duty is forgotten, the test fails.
func TestOptionDuties(t *testing.T) {
	names, err := NewNames("delay")
	if err != nil {
		t.Fatal(err)
	}
	p := Policy{Names: names}
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	in := Incoming{Stream: "DELAY_1h", Sequence: 7, At: at, Subject: "delay.1h.orders.x"}
	parse := func(in Incoming) Request {
		t.Helper()
		r, problem := p.Parse(in)
		if problem != nil {
			t.Fatalf("%v: %v", in.Header, problem)
		}
		return r
	}
	plain := parse(in)
	for _, name := range Options() {
		in := in
		in.Header = Header{name: {examples[name]}}
		r := parse(in)
		if reflect.DeepEqual(r, plain) {
			t.Errorf("%s: the example %q does not change the request; add one", name, examples[name])
		}
		hop := r
		hop.Hop++
		got := parse(Incoming{At: at, Subject: names.Hop("1m", r.Target), Header: r.HopHeader()})
		if !reflect.DeepEqual(got, hop) {
			t.Errorf("%s is lost between lanes: %+v", name, got)
		}
		letter := func(r Request) Letter {
			l, problem := names.ParseLetter(Incoming{At: at, Subject: names.Dead(Undelivered, r.Target),
				Header: r.DeadHeader(Problemf(Undelivered, "no"))})
			if problem != nil {
				t.Fatalf("%s: %v", name, problem)
			}
			return l
		}
		if got := letter(r); !reflect.DeepEqual(got.Request, r) {
			t.Errorf("%s is lost in a dead letter: %+v", name, got.Request)
		}
		if got, problem := p.Edit(letter(plain), HeaderEdit{Set: in.Header}, at); problem != nil ||
			!reflect.DeepEqual(got.OptionHeader(), r.OptionHeader()) {
			t.Errorf("%s cannot be set in a dead letter: %v, %v", name, got.OptionHeader(), problem)
		}
		if got, problem := p.Edit(letter(r), HeaderEdit{Drop: []string{name}}, at); problem != nil ||
			!reflect.DeepEqual(got.Request, plain) {
			t.Errorf("%s cannot be dropped from a dead letter: %+v, %v", name, got.Request, problem)
		}
		in.Header = r.OptionHeader()
		if again := parse(in); !reflect.DeepEqual(again, r) {
			t.Errorf("%s is lost in an extra delivery of a series, with %v: %+v", name, r.OptionHeader(), again)
		}
	}
}

// TestProtocolHasEachHeader: the sections of PROTOCOL.md name the headers of their messages.
func TestProtocolHasEachHeader(t *testing.T) {
	text, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	section := func(title string) string {
		_, after, found := strings.Cut(string(text), "\n## "+title+"\n")
		if !found {
			t.Fatalf("PROTOCOL.md has no section %q", title)
		}
		before, _, _ := strings.Cut(after, "\n## ")
		return before
	}
	request, delivered := section("Headers of a request"), section("Delivered messages")
	plain := HeadersOf(InPlain)
	for _, s := range []struct {
		title string
		in    Place
		also  string // sections to which this section refers
	}{
		{"Headers of a request", InPlain, ""}, {"Named timers", InTimer | InSeries, request},
		{"Schedules in nats-server's format", InSchedule, ""}, {"Delivered messages", InDelivery, request},
		{"Dead letters", InLetter, request + delivered},
		{"The broker's own subjects", InLane | InMarker, request + delivered},
	} {
		body := section(s.title) + s.also
		for _, r := range rowsIn(s.in) {
			if s.in == InLane|InMarker && r.tag > 0 && !r.apart {
				continue // a part of Delay-State
			}
			if r.target == "" && !strings.Contains(body, "`"+r.name+"`") && !strings.Contains(body, "`"+r.name+":") {
				t.Errorf("the section %q does not name %s", s.title, r.name)
			}
		}
	}
	for _, name := range timerHeaders {
		if slices.Contains(plain, name) {
			t.Errorf("%s is refused in a request without a key, and allowed", name)
		}
	}
}

var update = flag.Bool("update", false, "write the table of headers in PROTOCOL.md")

// TestProtocolTable prints the table of PROTOCOL.md that says where each header may stand, and compares it with the
// file.
func TestProtocolTable(t *testing.T) {
	const file, title = "PROTOCOL.md", "### Where each header may stand\n"
	columns := []struct {
		title string
		in    Place
	}{
		{"request", InPlain}, {"timer", InTimer}, {"recurring timer", InSeries}, {"schedule", InSchedule},
		{"target", InDelivery}, {"dead letter", InLetter},
	}
	line := func(cells []string) string { return "| " + strings.Join(cells, " | ") + " |\n" }
	titles, rule := []string{"header"}, "|---|"
	for _, c := range columns {
		titles, rule = append(titles, c.title), rule+"---|"
	}
	want := line(append(titles, "an operator may edit it")) + rule + "---|\n"
	for _, r := range rowsIn(anyRequest | InDelivery | InLetter) {
		cells := []string{"`" + r.name + "`"}
		for _, c := range columns {
			cell := ""
			if r.in&c.in != 0 {
				if cell = "yes"; c.in == InDelivery && r.target != "" {
					cell = "as `" + r.target + "`"
				}
			}
			cells = append(cells, cell)
		}
		edit := ""
		if r.edit {
			edit = "yes"
		}
		want += line(append(cells, edit))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, section, found := strings.Cut(string(text), title)
	start := strings.Index(section, "| header")
	if !found || start < 0 {
		t.Fatalf("%s has no table under %q", file, title)
	}
	end := start + strings.Index(section[start:], "\n\n") + 1
	switch {
	case *update:
		section = section[:start] + want + section[end:]
		if err := os.WriteFile(file, []byte(before+title+section), 0o644); err != nil {
			t.Fatal(err)
		}
	case section[start:end] != want:
		t.Errorf("the table is not that of the rows: run go test ./broker/message -update, and read the difference")
	}
}
