package house

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// asyncAPI has the parts of broker/message/asyncapi.yaml that PROTOCOL.md has, too. .ci/run compares the file with the
// schema of AsyncAPI.
type asyncAPI struct {
	Channels   map[string]asyncChannel
	Components struct {
		Messages map[string]struct {
			Headers struct {
				Properties map[string]struct{ Enum []string }
			}
			Payload struct {
				Properties map[string]struct{ Enum []string }
			}
		}
	}
}

type asyncChannel struct {
	Address    string
	Parameters map[string]struct{ Enum []string }
}

// TestAsyncAPI compares asyncapi.yaml with the tables of PROTOCOL.md and with the dead-letter codes.
func TestAsyncAPI(t *testing.T) {
	t.Parallel()
	var api asyncAPI
	natstest.NoError(t, yaml.Unmarshal([]byte(document(t, "broker/message/asyncapi.yaml")), &api))
	protocol := document(t, "broker/message/PROTOCOL.md")
	for name, table := range map[string]string{
		"request":   "## Headers of a request\n\n| header | |\n",
		"delivered": "| header | |\n|---|---|\n| `Delay-Id`",
		"schedule":  "| header | |\n|---|---|\n| `Nats-Schedule`",
	} {
		if !strings.Contains(protocol, table) {
			t.Fatalf("PROTOCOL.md has no table that begins with %q", table)
		}
		checkHeaders(t, api, name, headersOf(table, protocol))
	}
	checkHeaders(t, api, "timer", append(headersOf("| header of the set | |\n", protocol),
		message.HeaderFor, message.HeaderMaxWait, message.HeaderCancel, message.HeaderExpected))
	codes := make([]string, 0)
	for _, code := range message.Codes() {
		codes = append(codes, string(code))
	}
	for place, enum := range map[string][]string{
		"the channel of dead letters": api.Channels["deadLetter"].Parameters["code"].Enum,
		"Delay-Error-Code":            api.Components.Messages["deadLetter"].Headers.Properties["Delay-Error-Code"].Enum,
	} {
		if !sameSet(enum, codes) {
			t.Errorf("%s has the codes %q, want %q", place, enum, codes)
		}
	}
	_, outcomes, _ := strings.Cut(protocol, "| `outcome` | |\n|---|---|\n")
	outcomes, _, _ = strings.Cut(outcomes, "\n\n")
	var want []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(outcomes, -1) {
		want = append(want, row[1])
	}
	if got := api.Components.Messages["answer"].Payload.Properties["outcome"].Enum; !sameSet(got, want) || len(want) < 5 {
		t.Errorf("the answer has the outcomes %q, PROTOCOL.md %q", got, want)
	}
	for name, channel := range api.Channels {
		root, _, _ := strings.Cut(channel.Address, ".{")
		if root != "{schedule}" && root != "{target}" && !strings.Contains(protocol, "`"+root) {
			t.Errorf("PROTOCOL.md has no subject %s of the channel %s", root, name)
		}
	}
	for _, call := range regexp.MustCompile("(?m)^\\| `(delayctl\\.[a-z-]+)").FindAllStringSubmatch(protocol, -1) {
		if call[1] == "delayctl.owners" {
			continue // a broadcast of the brokers
		}
		if !slices.ContainsFunc(slices.Collect(maps.Values(api.Channels)), func(c asyncChannel) bool {
			return c.Address == call[1] || strings.HasPrefix(c.Address, call[1]+".")
		}) {
			t.Errorf("asyncapi.yaml has no channel for %s", call[1])
		}
	}
}

// headersOf returns the names of the headers in the first column of a table.
func headersOf(beginning, text string) (names []string) {
	begin := strings.Index(text, beginning)
	rows, _, _ := strings.Cut(text[begin+strings.Index(beginning, "|"):], "\n\n")
	for row := range strings.Lines(rows) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " |")
		for _, header := range regexp.MustCompile("`((?:Delay|Nats)-[A-Za-z-]+)`").FindAllStringSubmatch(cell, -1) {
			names = append(names, header[1])
		}
	}
	return names
}

func checkHeaders(t *testing.T, api asyncAPI, name string, want []string) {
	t.Helper()
	properties := api.Components.Messages[name].Headers.Properties
	for _, header := range want {
		if _, ok := properties[header]; !ok {
			t.Errorf("the message %s of asyncapi.yaml lacks the header %s", name, header)
		}
	}
	// A timer also has the headers of any request, and a schedule the conditions of a publish.
	if extra := len(properties) - len(want); len(want) < 4 || extra > 0 && name != "timer" && name != "schedule" {
		t.Errorf("the message %s has %d headers, PROTOCOL.md %d: %q", name, len(properties), len(want), want)
	}
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
