package operate

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

func TestMain(m *testing.M) { harness.Main(m) }

// A line is a command as a person types it, with the expected output.
type line struct {
	env   []string // additional variables
	args  string
	code  int      // exit code
	says  []string // parts of stdout and stderr
	never []string // text that may not occur
}

// check runs the command, checks its output, and returns stdout.
func (l line) check(t *testing.T, env []string) (stdout string) {
	t.Helper()
	stdout, stderr, code := natstest.RunCommand(t, slices.Concat(env, l.env), strings.Fields(l.args)...)
	all := stdout + stderr
	if l.args == "doctor" { // the output wraps its sentences
		all = strings.Join(strings.Fields(all), " ")
	}
	if code != l.code {
		t.Errorf("%s %s: exit code %d, want %d\n%s", l.env, l.args, code, l.code, all)
	}
	for _, part := range l.says {
		if !strings.Contains(all, part) {
			t.Errorf("%s %s: says no %q:\n%.3000s", l.env, l.args, part, all)
		}
	}
	for _, part := range l.never {
		if strings.Contains(all, part) {
			t.Errorf("%s %s: says %q:\n%.3000s", l.env, l.args, part, all)
		}
	}
	return stdout
}

// listening runs a server with a listener, for other processes, and returns its URL.
func listening(t *testing.T, o server.Options) string {
	t.Helper()
	o.Host, o.Port = "127.0.0.1", server.RANDOM_PORT
	return natstest.RunWith(t, o).Server().ClientURL()
}

// TestCommandsAtTheTerminal runs the commands of a new user and of an operator, in their own processes, against a
// broker with an embedded server. The commands report no problem of a working broker, and report a wrong argument
// before they change anything.
func TestCommandsAtTheTerminal(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	address, probes, dir := natstest.FreeAddress(t), natstest.FreeAddress(t), t.TempDir()
	env := []string{"DELAY_EMBEDDED_LISTEN=" + address, "DELAY_EMBEDDED_DIR=" + dir, "DELAY_HTTP_ADDR=" + probes,
		"DELAY_LOG_FORMAT=json"}
	p := natstest.StartBroker(t, append(env, "NATS_URL=")...)
	defer p.Terminate()

	for _, l := range commandsWithoutFaults(probes) {
		l.check(t, env)
	}

	nc, err := nats.Connect("nats://" + address)
	natstest.NoError(t, err)
	defer nc.Close()
	c := harness.WrapConn(t, nc)
	for _, subject := range []string{"delayin.soon.orders.x", "delayin.500d.orders.x", "delayin.500d.orders.x",
		"delayin.1s.$SYS.x"} {
		c.Publish(subject, "")
	}
	natstest.Await(t, "there are four dead letters", func() bool { return len(c.Arrivals("DELAY_DEAD")) == 4 })
	tooFar := c.DeadLetters()["too_far"][0]
	toMail := func(a harness.Arrival) bool { return a.Subject == "delaysys.retry.5s.shop.mail" }
	c.Publish("delay.1s.shop.mail", "", "Delay-Deliver", "core") // the target has no subscriber
	natstest.Await(t, "a message waits for its third attempt", func() bool {
		return slices.ContainsFunc(c.Arrivals("DELAY_RETRY_5s"), toMail)
	})
	for _, l := range commandsWithFaults(tooFar.ID) {
		l.check(t, env)
	}

	natstest.Await(t, "/status has the intake first, and a lane of 300 s with 10,000 messages", func() bool {
		lanes := statusOf(t, probes)
		return slices.Contains(lanes, statusLane{"DELAY_5m", 300, 10000}) && lanes[0].Stream == "DELAY_INTAKE"
	})
}

// commandsWithoutFaults returns commands against a broker without faults. Some have mistakes. The broker answers probes
// at an address.
func commandsWithoutFaults(probes string) []line {
	return []line{
		{args: "pub t.t x --level 5m --count 10000", says: []string{"10000", "DELAY_5m", "1 to 10000"},
			never: []string{"no broker answers"}},
		{args: "levels", says: []string{"10000", "0 lanes unread", "later", "idle lanes; --all shows them"},
			never: []string{"nobody", "RETRY"}},
		{args: "levels --all", says: []string{"DELAY_RETRY_30s", "0 lanes unread"}, never: []string{"nobody"}},
		{args: "doctor", says: []string{"10,000 messages pending", "http://" + probes + "/readyz",
			"the server accepted a trial message"}, never: []string{"critical", "nobody", "restart"}},
		{args: "where DELAY_5m-10000", says: []string{"waiting, due in 4m", "t.t"}, never: []string{"nobody"}},
		{args: "pub orders.x y --in 500d", code: 2, says: []string{"more than 366d ahead (DELAY_MAX_DELAY)"},
			never: []string{"DELAY_INTAKE-"}},
		{args: "pub orders.x y --at 2020-01-01T00:00:00Z", says: []string{"ago: the message is delivered immediately"}},
		{args: "pub a.* y --in 1s", code: 2, env: []string{"NATS_URL=nats://127.0.0.1:1"}, says: []string{"wildcard"}},
		{args: "sub a..b", code: 2, env: []string{"NATS_URL=nats://127.0.0.1:1"}, says: []string{"* for one token"}},
		{args: "where nothing", code: 2, env: []string{"NATS_URL=nats://127.0.0.1:1"}, says: []string{"<stream>-"}},
		{args: "dead ls --code x", code: 2, env: []string{"NATS_URL=nats://127.0.0.1:1"}, says: []string{"want bad_headers"}},
		{args: "provision", says: []string{"all 40 streams exist; nothing to do"}},
		{args: "healthcheck --ready", says: []string{"ok"}},
		{args: "serve", code: 1, says: []string{probes + " is in use by delaybroker (pid "}},
		{args: "levels",
			env: []string{"NATS_URI=nats://production:4222", "NATS_URLS=nats://x:1", "NATS_SERVERS=nats://x:1"},
			says: []string{"NATS_URI is not a setting and is ignored; did you mean NATS_URL?", "NATS_URLS is not",
				"NATS_SERVERS is not"}},
		{args: "levels", code: 2, env: []string{"DELAY_RETRY=shop.mail=1s;5s;30s", "DELAY_ATTEMPTS=shop.mail=0"},
			says: []string{"2 defaults: keep one", "attempts 0 for shop.mail"}},
		{args: "pub shop.mail y --in 1s -H Delay-Max-Attempts:6", code: 2, env: []string{"DELAY_ATTEMPTS=shop.mail=5"},
			says: []string{"want a whole number from 1 to 5,"}, never: []string{"DELAY_1s-"}},
		{args: "pub shop.mail y --in 1s -H Delay-Max-Attempts:21", code: 2,
			says: []string{"want a whole number from 1 to 20"}, never: []string{"DELAY_1s-"}},
		{args: "levels --watch=-1s", code: 2, says: []string{"--watch=-1s: want more than 0"}},
		{args: "dead ls --since 1h --until 2h", code: 2, says: []string{"--since is not before --until"}},
		{args: "dead ls", says: []string{"no dead letters"}},
		{args: "--version", says: []string{"delaybroker "}},
	}
}

// commandsWithFaults returns commands against a broker with dead letters, and with a target that refuses. The dead
// letter tooFar has a due time beyond DELAY_MAX_DELAY.
func commandsWithFaults(tooFar string) []line {
	return []line{
		{args: "dead ls --by code,target,reason",
			says: []string{"4 dead letters in 3 groups", "too_far", "bad_time", "bad_target"}},
		{args: "dead ls --limit 1", says: []string{"1 of 4 dead letters", "Z  "}},
		{args: "dead ls", says: []string{"Z  bad_time", "is not a number"}, never: []string{"…"}},
		{args: "retrying", says: []string{"shop.mail", "orders.x", "refused", " of 20", "nobody listens",
			" messages in 2 lines: "}, never: []string{"stopped"}},
		{args: "retrying --target shop.* --most 100", says: []string{"shop.mail", " in 1 line: "},
			never: []string{"orders.x", "stopped"}},
		{args: "retrying --target nobody --json", says: []string{`"messages":0`, `"states":{}`}},
		{args: "retrying --most 0", code: 2, says: []string{`"--most" flag: want 1 or more`}},
		{args: "ahead", says: []string{"DUE FROM", "messages pending, exactly", "not included: "},
			never: []string{"no broker reads"}},
		{args: "ahead --target orders.> --for 3h --json", says: []string{`"exact":true`, `"unread":0`}},
		{args: "pending ls --limit 1 --target shop.mail", says: []string{"shop.mail", "DELAY_RETRY_5s", "DELAY_1s-"}},
		{args: "pending ls --most 0", code: 2, says: []string{`"--most" flag: want 1 or more`}},
		{args: "where DELAY_1s-1", says: []string{"refused, next attempt in ", "last reason", "nobody listens",
			"next attempt", " of 20"}},
		{args: "where " + tooFar, says: []string{"too_far", "more than 366d ahead"}, never: []string{"\ndue "}},
		{args: "doctor", code: 1, says: []string{"delaybroker dead ls --by code,target,reason"},
			never: []string{"critical", "nats stream view"}},
	}
}

// statusLane is a lane in /status.
type statusLane struct {
	Stream  string
	Delay   float64
	Pending uint64
}

func statusOf(t *testing.T, address string) []statusLane {
	t.Helper()
	res, err := http.Get("http://" + address + "/status")
	natstest.NoError(t, err)
	defer res.Body.Close()
	var status struct{ Lanes []statusLane }
	natstest.NoError(t, json.NewDecoder(res.Body).Decode(&status))
	return status.Lanes
}

// TestCommandsWithoutJetStream runs these commands against a server without JetStream.
func TestCommandsWithoutJetStream(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	env := []string{"NATS_URL=" + listening(t, server.Options{}), "DELAY_HTTP_ADDR=off"}
	for _, args := range []string{"provision", "provision --json", "levels", "pub orders.x y --in 5s", "dead ls"} {
		line{args: args, code: 1, says: []string{"JetStream is off: start nats-server with -js"},
			never: []string{"nothing to do", "wanted", "no such level"}}.check(t, env)
	}
	line{args: "doctor", code: 2, says: []string{"start nats-server with -js"}, never: []string{"nobody"}}.check(t, env)
}

// TestCommandsWithAnotherPrefix runs these commands for a broker with another prefix, without that setting in the
// environment.
func TestCommandsWithAnotherPrefix(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	url := listening(t, server.Options{JetStream: true})
	env := []string{"NATS_URL=" + url, "DELAY_HTTP_ADDR=off", "DELAY_PREFIX=later", "DELAY_LEVELS=1s,5s,7s"}
	line{args: "provision", says: []string{"LATER_7s", "created"}}.check(t, env)
	nc, err := nats.Connect(url)
	natstest.NoError(t, err)
	defer nc.Close()
	harness.WrapConn(t, nc).Publish("later.7s.orders.x", "")
	stored := []string{"no broker answers: the message is stored", "LATER_7s-2-"}
	line{args: "pub orders.x y --level 7s", says: stored}.check(t, env)
	bare := env[:2]
	line{args: "levels", says: []string{"using the prefix later", "LATER_7s"},
		never: []string{"missing", "LATER_30m"}}.check(t, bare)
	line{args: "where LATER_7s-1", says: []string{"no instance reads its lane now"}}.check(t, bare)
	line{args: "doctor", code: 2, says: []string{"all 11 exist", "no broker reads any of the 8 lanes"},
		never: []string{"missing"}}.check(t, bare)
	line{args: "pub orders.x y --in 5s", code: 1,
		says: []string{"there are streams of the prefix later: set DELAY_PREFIX"}}.check(t, bare)
}
