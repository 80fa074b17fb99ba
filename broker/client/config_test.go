package client_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/client"
	"delaybroker/broker/client/clienttest"
	"delaybroker/broker/config"
	"delaybroker/broker/message"
)

// TestConfigIsChecked: the error of New names every invalid field.
func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	_, err := client.NewOn(nil, client.Config{
		Prefix: "No", Levels: "5 minutes", MaxDelay: -1, Targets: []string{"a..b"}, Timeout: -1, Attempts: -1,
	})
	wantError(t, err, client.ErrConfig)
	for _, want := range []string{"Prefix", "Levels", "MaxDelay", "Targets", "Timeout", "Attempts"} {
		if err == nil || !strings.Contains(err.Error(), "field "+want+": ") {
			t.Errorf("got %v, want %s in it", err, want)
		}
	}
	_, err = client.New(nil, client.Config{})
	wantError(t, err, client.ErrConfig)
	if client.DefaultMaxDelay != config.DefaultMaxDelay || client.DefaultAttempts != config.DefaultAttempts {
		t.Error("the client's defaults are not the broker's defaults")
	}
}

// TestConfigIsTheBrokers: a request that the broker's settings forbid fails at the call.
func TestConfigIsTheBrokers(t *testing.T) {
	t.Parallel()
	fake := clienttest.New(t, client.Config{
		MaxDelay: time.Hour, Attempts: 5, Targets: []string{"shop.>"}, Prefix: "later", Levels: "1s 5s 97m",
	})
	c := fake.Client()
	_, err := c.In(t.Context(), "shop.x", time.Hour+1, nil)
	wantError(t, err, client.ErrTooFar)
	_, err = c.In(t.Context(), "shop.x", 1<<63-1, nil) // a delay that no subject can express
	wantError(t, err, client.ErrBadTime)
	_, err = c.At(t.Context(), "shop.x", fake.Now().Add(time.Hour+1), nil)
	wantError(t, err, client.ErrTooFar)
	_, err = c.In(t.Context(), "other.x", time.Hour, nil)
	wantError(t, err, client.ErrBadTarget)
	_, err = c.In(t.Context(), "shop.x", time.Hour, nil, client.MaxAttempts(6))
	wantError(t, err, client.ErrBadOption)
	r, err := c.In(t.Context(), "shop.x", time.Hour, nil, client.MaxAttempts(5))
	if err != nil || r.Stream != "LATER_INTAKE" {
		t.Errorf("got %+v, %v, want the message in LATER_INTAKE", r, err)
	}
	if n := len(fake.Requests()); n != 1 {
		t.Errorf("%d requests were published, want the valid one", n)
	}
}

// TestOptionsSayEverything: for each request header in PROTOCOL.md there is an option, except for Delay-Target: the
// client writes the target into the subject.
func TestOptionsSayEverything(t *testing.T) {
	t.Parallel()
	protocol, err := os.ReadFile("../message/PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(protocol), "\n## Headers of a request\n")
	table, _, _ = strings.Cut(table, "\n### ")
	c, fake := onFake(t)
	due := fake.Now().Add(time.Minute + 1)
	if _, err := c.Level(t.Context(), "shop.x", "1m", nil, client.ID("x/1"), client.Expires(time.Hour),
		client.Deliver(client.ModeStream), client.MaxAttempts(3), client.TTL(time.Second), client.Until(due),
		client.RateKey("t7"), client.Spread(0),
		client.Headers(nats.Header{"X-Mine": {"a", "b"}, "traceparent": {"00"}})); err != nil {
		t.Fatal(err)
	}
	sent := fake.Requests()[0].Header
	rows := regexp.MustCompile("(?m)^\\| `([A-Za-z-]+)` \\|").FindAllStringSubmatch(table, -1)
	if len(rows) < 7 {
		t.Fatalf("PROTOCOL.md has %d request headers, want at least 7", len(rows))
	}
	for _, row := range rows {
		if row[1] != message.HeaderTarget && sent.Get(row[1]) == "" {
			t.Errorf("no option sets %s: got %v", row[1], sent)
		}
	}
	messages := fake.Advance(2 * time.Minute)
	if len(messages) != 1 || !slices.Equal(messages[0].Header["X-Mine"], []string{"a", "b"}) ||
		messages[0].Header["traceparent"] == nil {
		t.Errorf("got %v, want the headers of the caller", messages)
	}
}

// TestMistakesFailAtTheCall: the client does not publish a request with contradictory options, or a request that would
// become a dead letter.
func TestMistakesFailAtTheCall(t *testing.T) {
	t.Parallel()
	c, fake := onFake(t)
	for _, tt := range []struct {
		name string
		opt  client.Option
		want error
	}{
		{"an id that is empty", client.ID(""), client.ErrBadOption},
		{"an id with a line feed", client.ID("a\nb"), client.ErrBadOption},
		{"an id that would be trimmed", client.ID("a "), client.ErrBadOption},
		{"no mode", client.Deliver(""), client.ErrBadOption},
		{"an unknown mode", client.Deliver("pigeon"), client.ErrBadOption},
		{"no attempts", client.MaxAttempts(0), client.ErrBadOption},
		{"too many attempts", client.MaxAttempts(21), client.ErrBadOption},
		{"a short TTL", client.TTL(time.Millisecond), client.ErrBadOption},
		{"a negative TTL", client.TTL(-time.Second), client.ErrBadOption},
		{"expired", client.Expires(-1), client.ErrBadOption},
		{"expired before it is due", client.ExpiresAt(fake.Now()), client.ErrBadOption},
		{"two times", client.Until(fake.Now().Add(time.Hour)), client.ErrBadOption},
		{"no time", client.Until(time.Time{}), client.ErrBadOption},
		{"a header of NATS", client.Header("Nats-Rollup", "all"), client.ErrBadHeaders},
		{"an id as a header", client.Header("Nats-Msg-Id", "a"), client.ErrBadHeaders},
		{"a header of the broker", client.Header("Delay-Id", "a"), client.ErrBadHeaders},
		{"a request's header", client.Header("delay-expires", "1h"), client.ErrBadHeaders},
		{"a misspelt header", client.Header("Delay-Expire", "1h"), client.ErrBadOption},
		{"a name that cannot be sent", client.Header("a b", "c"), client.ErrBadHeaders},
		{"too many headers", client.Headers(nats.Header{"a": make([]string, 65)}), client.ErrBadHeaders},
	} {
		if _, err := c.In(t.Context(), "shop.x", time.Minute, nil, tt.opt); err == nil {
			t.Errorf("%s: got nil, want %v", tt.name, tt.want)
		} else {
			wantError(t, err, tt.want)
		}
	}
	if sent, dead := len(fake.Requests()), len(fake.Letters()); sent+dead > 0 {
		t.Errorf("%d requests and %d dead letters, want none", sent, dead)
	}
}

// TestOptionsAreTheCallers: the client copies a header map, and does not change the caller's map.
func TestOptionsAreTheCallers(t *testing.T) {
	t.Parallel()
	c, fake := onFake(t)
	h := nats.Header{"X-Mine": {"a"}}
	opt := client.Headers(h)
	for range 2 {
		if _, err := c.In(t.Context(), "shop.x", time.Minute, nil, opt, opt, client.ID("x")); err != nil {
			t.Fatal(err)
		}
	}
	if len(h) != 1 || len(h["X-Mine"]) != 1 {
		t.Errorf("the caller's header is %v, want it unchanged", h)
	}
	h["X-Mine"][0] = "b"
	if got := fake.Advance(time.Hour); len(got) != 1 || got[0].Header.Get("X-Mine") != "a" {
		t.Errorf("got %v, want the header of the publish", got)
	}
}

// TestSpreadOfReceipt: a receipt has the due time with the part of Spread, if the client knows what decides the part.
// Otherwise it has the earliest time, and Lookup returns the exact one.
func TestSpreadOfReceipt(t *testing.T) {
	t.Parallel()
	c, fake := onFake(t)
	earliest := fake.Now().Add(time.Hour)
	spread := client.Spread(10 * time.Minute)
	for _, opt := range []client.Option{client.ID("order-42/expire"), client.Key("order-42"), spread} {
		r, err := c.In(t.Context(), "shop.x", time.Hour, nil, opt, spread)
		if err != nil {
			t.Fatal(err)
		}
		found, err := c.Lookup(t.Context(), r)
		if err != nil || !found.Due.After(earliest) || !found.Due.Before(earliest.Add(10*time.Minute)) {
			t.Errorf("the exact due time is %v, %v", found.Due, err)
		}
		want := found.Due
		if r.Key == "" && len(fake.Requests()) > 1 { // neither an id nor a key
			want = earliest
		}
		if !r.Due.Equal(want) {
			t.Errorf("the receipt says %v, the exact time is %v, the earliest %v", r.Due, found.Due, earliest)
		}
	}
	_, err := c.In(t.Context(), "shop.x", time.Hour, nil, client.Spread(-1))
	wantError(t, err, client.ErrBadOption)
	_, err = c.In(t.Context(), "shop.x", time.Hour, nil, client.Key("k"), client.Every(time.Hour), spread)
	wantError(t, err, client.ErrBadOption)
}
