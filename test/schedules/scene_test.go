package schedules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

func TestMain(m *testing.M) { harness.Main(m) }

// stage is a server with its own scheduler, or a server with a broker.
type stage struct {
	server *natstest.Server
	home   string // the stream that the answers to requests name
	target string // the stream with the subjects orders.>
}

// serverStage returns a stage with the server's own scheduler. One stream has the schedules and the targets.
func serverStage(t *testing.T, s *natstest.Server, storage jetstream.StorageType) stage {
	st := stage{server: s, home: "PLAN", target: "PLAN"}
	st.create(t, jetstream.StreamConfig{
		Name: "PLAN", Subjects: []string{"schedules.>", "orders.>"}, AllowMsgSchedules: true, AllowMsgTTL: true,
		AllowRollup: true, Storage: storage,
	})
	st.create(t, jetstream.StreamConfig{Name: "ELSEWHERE", Subjects: []string{"elsewhere.>"}})
	return st
}

// brokerStage returns a stage with a broker that serves the server's format. The targets are in two other streams.
func brokerStage(t *testing.T, s *natstest.Server) (st stage, stop func()) {
	st = stage{server: s, home: "DELAY_TIMERS", target: "ORDERS"}
	st.create(t, jetstream.StreamConfig{
		Name: "ORDERS", Subjects: []string{"orders.>"}, AllowMsgTTL: true, AllowRollup: true,
	})
	st.create(t, jetstream.StreamConfig{Name: "ELSEWHERE", Subjects: []string{"elsewhere.>"}})
	return st, st.startBroker(t)
}

// startBroker runs a broker until the call of stop or the end of the test.
func (st stage) startBroker(t *testing.T) (stop func()) {
	t.Helper()
	return harness.StartBroker(t, st.server, broker.Config{
		Timers:    true,
		Schedules: message.ParseScheduleRules("schedules.>=orders.>,schedules.>=elsewhere.>", nil),
	}, nats.PingInterval(24*time.Hour)).Stop
}

func (st stage) create(t *testing.T, cfg jetstream.StreamConfig) {
	t.Helper()
	nc := st.server.Connect(nats.Name("preparations"))
	defer nc.Close()
	if _, err := st.server.JetStream(nc).CreateStream(context.Background(), cfg); err != nil {
		t.Fatalf("create %s: %v", cfg.Name, err)
	}
}

// scene is a rule that runs on a stage. It records the answers and the arrivals.
type scene struct {
	stage
	t     *testing.T
	name  string // a token of all subjects of the scene, so that scenes can share the stage
	nc    *nats.Conn
	js    jetstream.JetStream
	start time.Time // at a full second

	lines []string
	acks  []uint64 // the sequence in each answer; 0 for a refusal
}

// play runs all rules at the same time, and calls meanwhile during the run. It returns the record of each rule.
func (st stage) play(t *testing.T, rules []rule, meanwhile func()) [][]string {
	t.Helper()
	time.Sleep(time.Until(time.Now().Add(time.Second).Truncate(time.Second)))
	scenes := make([]*scene, len(rules))
	// All scenes share one connection. They take hours of fake time, so its pings are rare.
	nc := st.server.Connect(nats.Name("client"), nats.PingInterval(24*time.Hour))
	var acting sync.WaitGroup
	for i, r := range rules {
		scenes[i] = &scene{
			stage: st, t: t, name: fmt.Sprintf("r%d", i), nc: nc, js: st.server.JetStream(nc), start: time.Now(),
		}
		acting.Go(func() {
			r.act(scenes[i])
			for _, name := range []string{"a", "b", "c"} { // an empty message ends a repeating schedule
				scenes[i].answer(scenes[i].message("schedules."+name, ""))
			}
		})
	}
	meanwhile()
	acting.Wait()
	said := make([][]string, len(rules))
	for i, s := range scenes {
		for _, line := range s.lines {
			said[i] = append(said[i], strings.ReplaceAll(line, "."+s.name+".", "."))
		}
	}
	return said
}

// own returns the subject of this scene for a subject of a rule: schedules.r7.a for schedules.a.
func (s *scene) own(subject string) string {
	for _, root := range []string{"schedules.", "orders.", "elsewhere."} {
		if rest, ok := strings.CutPrefix(subject, root); ok {
			return root + s.name + "." + rest
		}
	}
	return subject
}

// at returns the schedule that is due at a time after the start.
func (s *scene) at(after time.Duration) string { return "@at " + s.time(after) }

func (s *scene) time(after time.Duration) string {
	return s.start.Add(after).UTC().Format(time.RFC3339Nano)
}

func (s *scene) note(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// ask publishes a request, and records the answer.
func (s *scene) ask(subject, body string, headers ...string) {
	s.t.Helper()
	s.lines = append(s.lines, s.answer(s.message(subject, body, headers...)))
}

// schedule requests a schedule on schedules.a for orders.x, and records the answer.
func (s *scene) schedule(when string, headers ...string) {
	s.t.Helper()
	s.ask("schedules.a", "hi", append([]string{"Nats-Schedule", when, "Nats-Schedule-Target", "orders.x"}, headers...)...)
}

func (s *scene) message(subject, body string, headers ...string) *nats.Msg {
	m := &nats.Msg{Subject: s.own(subject), Data: []byte(body), Header: nats.Header{}}
	for h := range slices.Chunk(headers, 2) {
		value := s.own(h[1])
		if h[0] == "Nats-Msg-Id" {
			value += "/" + s.name
		}
		m.Header.Add(h[0], value)
	}
	return m
}

// answer publishes a message, and returns the answer as text.
func (s *scene) answer(m *nats.Msg) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	reply, err := s.nc.RequestMsgWithContext(ctx, m)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return "no responders"
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer"
	case err != nil:
		s.t.Fatalf("ask %s: %v", m.Subject, err)
	}
	var ack struct {
		Stream    string
		Seq       uint64
		Duplicate bool
		Error     *jetstream.APIError
	}
	if err := json.Unmarshal(reply.Data, &ack); err != nil {
		s.t.Fatalf("the answer %q: %v", reply.Data, err)
	}
	if strings.HasPrefix(m.Subject, "schedules.") && ack.Stream != s.home {
		s.t.Errorf("the answer %s does not name the stream %s", reply.Data, s.home)
	}
	if e := ack.Error; e != nil {
		s.acks = append(s.acks, 0)
		return fmt.Sprintf("%d %d %s", e.Code, e.ErrorCode, s.plain(e.Description))
	}
	said := "ok"
	if ack.Duplicate {
		i := slices.Index(s.acks, ack.Seq)
		said = fmt.Sprintf("duplicate of answer %d", i+1)
	}
	s.acks = append(s.acks, ack.Seq)
	return said
}

// plain removes the parts of a text that depend on other scenes.
func (s *scene) plain(description string) string {
	about, what, _ := strings.Cut(description, ": ")
	switch about {
	case "wrong last msg ID":
		return about
	case "wrong last sequence":
		for i, seq := range s.acks {
			if what == fmt.Sprint(seq) {
				return fmt.Sprintf("%s: that of answer %d", about, i+1)
			}
		}
	}
	return description
}

// wait waits until a millisecond after a time, which counts from the start. So the broker has delivered the messages
// that are due at that time.
func (s *scene) wait(until time.Duration) {
	time.Sleep(time.Until(s.start.Add(until + time.Millisecond)))
}

// recordAt waits until a time after the start, and records the arrivals.
func (s *scene) recordAt(until time.Duration, headers ...string) {
	s.t.Helper()
	s.wait(until)
	s.record(headers...)
}

// record records the arrivals at the targets, with these headers.
func (s *scene) record(headers ...string) {
	s.t.Helper()
	for stream, root := range map[string]string{s.target: "orders", "ELSEWHERE": "elsewhere"} {
		for _, m := range s.stored(stream, root+"."+s.name+".>") {
			if strings.HasPrefix(m.Subject, root+"."+s.name+".source") {
				continue
			}
			line := fmt.Sprintf("%s: %s %q", s.after(m.Time), m.Subject, m.Data)
			for _, name := range headers {
				for _, value := range m.Header[name] {
					line += fmt.Sprintf(" %s=%s", name, value)
				}
			}
			s.lines = append(s.lines, line)
		}
	}
}

// slack is the maximum lateness of the server's scheduler without an outage.
const slack = 250 * time.Millisecond

// after returns the time since the start, less slack, rounded up to a second.
func (s *scene) after(t time.Time) string {
	d := t.Sub(s.start) - slack
	if d <= 0 {
		return "immediately"
	}
	return "after " + (d + time.Second - 1).Truncate(time.Second).String()
}

func (s *scene) stored(stream, subjects string) (all []*jetstream.RawStreamMsg) {
	s.t.Helper()
	st := s.stream(stream)
	for seq := uint64(1); ; seq++ {
		m, err := st.GetMsg(context.Background(), seq, jetstream.WithGetMsgSubject(subjects))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return all
		}
		if err != nil {
			s.t.Fatalf("look at %s: %v", stream, err)
		}
		all = append(all, m)
		seq = m.Sequence
	}
}

func (s *scene) stream(name string) jetstream.Stream {
	s.t.Helper()
	st, err := s.js.Stream(context.Background(), name)
	if err != nil {
		s.t.Fatalf("look at %s: %v", name, err)
	}
	return st
}
