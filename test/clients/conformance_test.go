package clients

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/client"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/entry"
	"delaybroker/levels"
	"delaybroker/test/natstest"
)

const conformanceFile = "../../broker/client/conformance.json"

// conformanceTime is the time of the requests: the file has times of the same month.
var conformanceTime = time.Date(2030, 12, 1, 0, 0, 0, 0, time.UTC)

// The contents of conformanceFile.
type (
	conformance struct {
		Requests []conformingRequest
		Verdicts []conformingVerdict
		// The headers of a cancel and a move of each entry, beside the token.
		Moved     []struct{ Entry, Headers map[string]string }
		Cancelled struct{ Headers map[string]string }
		Arrivals  []conformingArrival
	}
	conformingRequest struct {
		Call, Key, Target, Delay, Subject, Error string
		MaxWait                                  string `json:"max_wait"`
		Time                                     time.Time
		Generation                               uint64
		Options                                  struct {
			ID, Spread, Expires, Deliver, TTL string
			RateKey                           string `json:"rate_key"`
			MaxAttempts                       int    `json:"max_attempts"`
			IfAbsent                          bool   `json:"if_absent"`
			IfGeneration                      uint64 `json:"if_generation"`
			Headers                           map[string]string
		}
		Headers map[string]string
		Answers []string
		WaitMS  *int64 `json:"wait_ms"`
	}
	conformingVerdict struct {
		Name    string
		Entry   map[string]string
		Answers []string
		Verdict string
		Missing int      // the number of reads that do not find the entry
		Leaders []string // the leaders that answer about the stream: "alone" or "holds", then the present leader
	}
	conformingArrival struct {
		Headers map[string]string
		Arrival *struct {
			ID         string
			DueMS      int64  `json:"due_ms"`
			AcceptedMS int64  `json:"accepted_ms"`
			MsgID      string `json:"msg_id"`
			Attempts   int
			Series     uint64
			Round      int
		}
	}
)

func readConformance(t *testing.T) (c conformance) {
	t.Helper()
	text, err := os.ReadFile(conformanceFile)
	natstest.NoError(t, err)
	natstest.NoError(t, json.Unmarshal(text, &c))
	if len(c.Requests) < 30 || len(c.Verdicts) < 10 || len(c.Arrivals) < 4 {
		t.Fatalf("%s has %d requests, %d verdicts and %d arrivals", conformanceFile, len(c.Requests), len(c.Verdicts),
			len(c.Arrivals))
	}
	return c
}

// sentinels are the errors of package client by the names in conformanceFile.
var sentinels = map[string]error{
	"ErrBadTarget": client.ErrBadTarget, "ErrBadTime": client.ErrBadTime, "ErrBadKey": client.ErrBadKey,
	"ErrBadOption": client.ErrBadOption, "ErrNoBroker": client.ErrNoBroker, "ErrTooLarge": client.ErrTooLarge,
	"ErrFull": client.ErrFull, "ErrConflict": client.ErrConflict, "ErrUnanswered": client.ErrUnanswered,
	"ErrForeign": client.ErrForeign,
}

func nameOf(err error) string {
	for name, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			return name
		}
	}
	return fmt.Sprint(err)
}

// A script is a store that answers from a list: each answer is "what" or "what:next entry".
type script struct {
	client.Store // nil: the client calls only the methods below

	answers   []string
	leaders   []string // see conformingVerdict
	missing   int      // see conformingVerdict
	published []*nats.Msg
	last      *message.Incoming // the last entry of the timer
}

func newScript(last map[string]string, answers ...string) *script {
	s := &script{answers: answers}
	if last != nil {
		s.last = &message.Incoming{Sequence: 9, Header: header(last), Data: []byte("body")}
	}
	return s
}

func header(values map[string]string) message.Header {
	h := make(message.Header)
	for name, value := range values {
		h[name] = []string{value}
	}
	return h
}

func (s *script) Now() time.Time       { return conformanceTime }
func (s *script) MaxPayload() int64    { return 1 << 20 }
func (s *script) Refusal(string) error { return nil }
func (s *script) next() (answer string) {
	answer, s.answers = s.answers[0], s.answers[1:]
	return answer
}
func (s *script) remember(h message.Header) {
	sequence := uint64(10)
	if s.last != nil {
		sequence = s.last.Sequence + 1
	}
	s.last = &message.Incoming{Sequence: sequence, Header: h}
}

func (s *script) Reader(string) change.Reader { return s }

func (s *script) Last(ctx context.Context, subject string) (message.Incoming, error) {
	if s.missing > 0 {
		s.missing--
		return message.Incoming{}, jetstream.ErrMsgNotFound
	}
	return s.Next(ctx, subject, 0)
}

func (s *script) Next(_ context.Context, subject string, from uint64) (message.Incoming, error) {
	if s.last == nil || s.last.Sequence < from {
		return message.Incoming{}, jetstream.ErrMsgNotFound
	}
	in := *s.last
	in.Subject, in.At, in.KeysCurrent = subject, time.Now(), true
	return in, nil
}

func (s *script) End(context.Context, string) (change.End, error) {
	end := change.End{LastSeq: 99, ServerTime: conformanceTime, Quorate: true, Holds: s.last != nil}
	if len(s.leaders) > 0 {
		elected := s.leaders[0] != "alone"
		end.Quorate, end.Holds = elected, end.Holds && elected
		s.leaders = s.leaders[1:]
	}
	return end, nil
}

func (s *script) PublishMsg(
	_ context.Context, m *nats.Msg, _ ...jetstream.PublishOpt,
) (*jetstream.PubAck, error) {
	s.published = append(s.published, m)
	if len(s.answers) == 0 {
		return nil, errors.New("an unexpected publish")
	}
	answer, following, _ := strings.Cut(s.next(), ":")
	ack := &jetstream.PubAck{Stream: "DELAY_30m", Sequence: 10}
	if s.last != nil {
		ack.Sequence = s.last.Sequence + 1
	}
	switch following {
	case "own":
		s.remember(message.Header(m.Header))
	case "set":
		s.remember(header(map[string]string{"Delay-For": "30m"}))
	case "over":
		// The outcome of a later timer: if it were that of the timer itself, the Go client would know that its change came
		// too late.
		s.remember(header(map[string]string{"Delay-For": "30m"}))
		s.remember(header(map[string]string{"Delay-Over": "10 delivered"}))
	}
	switch answer {
	case "stored":
		return ack, nil
	case "duplicate":
		ack.Duplicate = true
		return ack, nil
	case "foreign":
		ack.Stream = "ORDERS"
		return ack, nil
	case "lost":
		return nil, context.DeadlineExceeded
	case "no_broker":
		return nil, jetstream.ErrNoStreamResponse
	}
	codes := map[string]jetstream.ErrorCode{"conflict": 10071, "full": 10077, "too_large": 10054}
	return nil, &jetstream.APIError{ErrorCode: codes[answer]}
}

func clientOn(t *testing.T, s client.Store) *client.Client {
	t.Helper()
	c, err := client.NewOn(s, client.Config{})
	natstest.NoError(t, err)
	return c
}

// call makes the request with the Go client.
func (r conformingRequest) call(t *testing.T, c *client.Client) error {
	t.Helper()
	delay, _ := levels.ParseDuration(r.Delay) // an invalid one is only for Level
	wait := func(text string) time.Duration {
		d, err := levels.ParseDuration(text)
		natstest.NoError(t, err)
		return d
	}
	var opts []client.Option
	add := func(given bool, option func() client.Option) {
		if given {
			opts = append(opts, option())
		}
	}
	o := r.Options
	add(o.ID != "", func() client.Option { return client.ID(o.ID) })
	add(o.Spread != "", func() client.Option { return client.Spread(wait(o.Spread)) })
	add(o.Expires != "", func() client.Option { return client.Expires(wait(o.Expires)) })
	add(o.Deliver != "", func() client.Option { return client.Deliver(client.Mode(o.Deliver)) })
	add(o.MaxAttempts > 0, func() client.Option { return client.MaxAttempts(o.MaxAttempts) })
	add(o.RateKey != "", func() client.Option { return client.RateKey(o.RateKey) })
	add(o.TTL != "", func() client.Option { return client.TTL(wait(o.TTL)) })
	add(o.IfAbsent, client.IfAbsent)
	add(o.IfGeneration > 0, func() client.Option { return client.IfGeneration(o.IfGeneration) })
	for name, value := range o.Headers {
		opts = append(opts, client.Header(name, value))
	}
	body, ctx := []byte("body"), t.Context()
	var err error
	switch r.Call {
	case "level":
		_, err = c.Level(ctx, r.Target, r.Delay, body, opts...)
	case "cancel":
		err = c.Cancel(ctx, r.Key, r.Target, r.Generation)
	default:
		if r.Call == "debounce" {
			opts = append(opts, client.Debounce(wait(r.MaxWait)))
		}
		if r.Key != "" {
			opts = append(opts, client.Key(r.Key))
		}
		if r.Time.IsZero() {
			_, err = c.In(ctx, r.Target, delay, body, opts...)
		} else {
			_, err = c.At(ctx, r.Target, r.Time, body, opts...)
		}
	}
	return err
}

// TestConformance runs the file with the Go client. The broker's parser accepts each published request, with its target
// and its due time.
func TestConformance(t *testing.T) {
	file := readConformance(t)
	for _, r := range file.Requests {
		if r.Answers == nil {
			r.Answers = []string{"stored"}
		}
		s := newScript(nil, r.Answers...)
		err := r.call(t, clientOn(t, s))
		if r.Error != "" {
			if !errors.Is(err, sentinels[r.Error]) {
				t.Errorf("%+v: got %v, want %s", r, err, r.Error)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: got %v, want nil", r, err)
			continue
		}
		m := s.published[len(s.published)-1]
		if got := message.Header(m.Header); m.Subject != r.Subject || !sameHeaders(got, r.Headers) {
			t.Errorf("%+v: got %s %v", r, m.Subject, got)
		}
		checkParsed(t, r)
	}
}

// sameHeaders compares headers. Of Delay-Until, it compares the time.
func sameHeaders(got message.Header, want map[string]string) bool {
	flat := make(map[string]string)
	for name, values := range got {
		flat[name] = strings.Join(values, ",")
	}
	for _, h := range []map[string]string{flat, want} {
		if until, err := time.Parse(time.RFC3339Nano, h[message.HeaderUntil]); err == nil {
			h[message.HeaderUntil] = until.UTC().String()
		}
	}
	return maps.Equal(flat, want)
}

// checkParsed parses the request of the file, not of the client, as a broker does.
func checkParsed(t *testing.T, r conformingRequest) {
	t.Helper()
	names, err := message.NewNames(message.DefaultPrefix)
	natstest.NoError(t, err)
	if r.Call == "cancel" {
		return
	}
	h := maps.Clone(r.Headers)
	if !r.Time.IsZero() && h[message.HeaderUntil] != "" {
		h[message.HeaderUntil] = r.Time.Format(time.RFC3339Nano)
	}
	request, problem := entry.ParseAny(
		message.Policy{Names: names, MaxDelay: client.DefaultMaxDelay},
		message.Incoming{
			Stream:   names.IntakeStream(),
			Sequence: 1,
			At:       conformanceTime,
			Subject:  r.Subject,
			Header:   header(h),
		},
	)
	due := r.Time
	if r.WaitMS != nil {
		due = conformanceTime.Add(time.Duration(*r.WaitMS) * time.Millisecond)
	}
	if problem != nil || request.Target != r.Target || !request.Due.Equal(due) {
		t.Errorf("the broker parses %+v as target %s, due %s, problem %v; want due %s", r, request.Target, request.Due,
			problem, due)
	}
}

// TestConformanceOfVerdicts: cancels and moves have the verdicts of the file after each kind of answer.
func TestConformanceOfVerdicts(t *testing.T) {
	file := readConformance(t)
	for _, v := range file.Verdicts {
		for name, change := range map[string]func(*client.Client) (bool, error){
			"cancel": func(c *client.Client) (bool, error) {
				return c.CancelPending(t.Context(), "order-42", "orders.expire")
			},
			"move": func(c *client.Client) (bool, error) {
				return c.MovePending(t.Context(), "order-42", "orders.expire", 2*time.Hour)
			},
		} {
			s := newScript(v.Entry, v.Answers...)
			s.missing, s.leaders = v.Missing, v.Leaders
			done, err := change(clientOn(t, s))
			got := fmt.Sprint(done)
			if err != nil {
				got = nameOf(err)
			}
			if got != v.Verdict || len(s.answers) > 0 {
				t.Errorf("%s: the %s has the verdict %s, and left the answers %q; want %s", v.Name, name, got, s.answers,
					v.Verdict)
			}
		}
	}
	for _, moved := range file.Moved {
		s := newScript(moved.Entry, "stored", "stored")
		_, err := clientOn(t, s).MovePending(t.Context(), "order-42", "orders.expire", 2*time.Hour)
		natstest.NoError(t, err)
		_, err = clientOn(t, s).CancelPending(t.Context(), "order-42", "orders.expire")
		natstest.NoError(t, err)
		for i, want := range []struct {
			token   string
			headers map[string]string
		}{{message.HeaderWord, moved.Headers}, {message.HeaderCancel, file.Cancelled.Headers}} {
			got := message.Header(s.published[i].Header)
			if got[want.token] == nil {
				t.Errorf("a change has no %s", want.token)
			}
			delete(got, want.token)
			if !sameHeaders(got, want.headers) {
				t.Errorf("a change has the headers %v, want %v", got, want.headers)
			}
		}
	}
}

func TestConformanceOfArrivals(t *testing.T) {
	for _, a := range readConformance(t).Arrivals {
		got, ok := client.ParseArrival(&nats.Msg{Header: nats.Header(header(a.Headers))})
		if ok != (a.Arrival != nil) {
			t.Errorf("%v: ok is %t", a.Headers, ok)
		}
		if want := a.Arrival; ok && (got.ID != want.ID || got.Due.UnixMilli() != want.DueMS ||
			got.Accepted.UnixMilli() != want.AcceptedMS || got.MsgID != want.MsgID || got.Attempts != want.Attempts ||
			got.Series != want.Series || got.Round != want.Round) {
			t.Errorf("%v: got %+v, want %+v", a.Headers, got, *want)
		}
	}
}

// TestConformanceOfJavaScript runs the file with the JavaScript client.
func TestConformanceOfJavaScript(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	dir := installJavaScript(t)
	copyFile(t, "conformance/conformance.mjs", dir)
	copyFile(t, "../../broker/client/javascript/delaybroker.mjs", dir)
	copyFile(t, conformanceFile, dir)
	runConformance(t, dir, "node", "conformance.mjs", "conformance.json")
}

// TestConformanceOfPython runs the file with the Python client. The test needs no nats-py: a script of answers is in
// its place.
func TestConformanceOfPython(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("NOT RUN: there is no python3")
	}
	runConformance(t, ".", "python3", "-B", "conformance/conformance.py", conformanceFile, "../../broker/client/python")
}

func runConformance(t *testing.T, dir, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestJavaScriptClient uses the JavaScript client on a broker.
func TestJavaScriptClient(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	dir := installJavaScript(t)
	copyFile(t, "conformance/live.mjs", dir)
	copyFile(t, "../../broker/client/javascript/delaybroker.mjs", dir)
	got := run(t, dir, startBroker(t), "node", "live.mjs")
	want := `{"duplicate":[false,true],"set":true,"conflict":"ErrConflict","moved":true,"cancelled":true,` +
		`"twice":false,"none":false,"arrived":["live.at b","live.in a","live.timer c"]}`
	if strings.TrimSpace(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
