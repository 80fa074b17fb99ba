package promises

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/deliver"
	"delaybroker/broker/inspect"
	"delaybroker/broker/timer/timetable"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

var (
	monthDays    = flag.Int("month.days", 4, "days of TestAMonth, a multiple of four")
	monthBrokers = flag.Int("month.brokers", 1, "brokers of TestAMonth, one to three")
)

// monthSecrets are the secrets before and after the first rotation. The next rotation goes back to the first secret.
var monthSecrets = [2]string{"the first secret of the shop", "the second secret of the shop"}

// TestAMonth runs a small shop under fake time. Each order sets a timeout, of which most are cancelled. The shop has
// reminders, series through a change of the local clocks, a target that is down for a night, a pause, a rate, restarts,
// another secret, and other levels. At the end no message is lost, early or duplicated, and no cancelled timer has
// fired. After the first day, consumers, goroutines and memory grow only within the bounds in check. A run with two
// brokers takes some ten times as long, because the brokers write a heartbeat each second of the month:
//
//	go test ./test/promises -run TestAMonth -month.days 32 -timeout 1h
//	go test ./test/promises -run TestAMonth -month.days 32 -month.brokers 3 -timeout 4h
func TestAMonth(t *testing.T) {
	natstest.SkipShort(t)
	if *monthDays%4 != 0 || *monthDays < 4 || *monthBrokers < 1 || *monthBrokers > 3 {
		t.Fatal("-month.days: write a multiple of four; -month.brokers: write 1 to 3")
	}
	// No other test runs. On one processor, a switch between goroutines costs half as much.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	dir := natstest.Dir(t)
	natstest.DropTimers()
	synctest.Test(t, func(t *testing.T) {
		// The clocks of Berlin change in the middle.
		change := time.Date(2000, time.March, 26, 1, 0, 0, 0, time.UTC)
		time.Sleep(time.Until(change.Add(-time.Duration(*monthDays) * 12 * time.Hour).Truncate(24 * time.Hour)))
		m := newMonth(t, dir, *monthBrokers, *monthDays)
		for m.day = range m.days {
			m.liveADay()
		}
		m.check()
	})
}

// A month has a shop, its server and its brokers.
type month struct {
	*harness.Client
	server  *natstest.Server
	cfg     broker.Config
	brokers []*harness.Instance
	size    int // the number of running brokers
	retired int // the number of stopped brokers, whose memory the test keeps until its end
	days    int
	day     int // the day of this month, from 0
	random  *rand.Rand
	begin   time.Time

	orders    int
	due       map[string]time.Time   // the due time of each message that must arrive, by its body
	cancelled map[string]bool        // by body
	series    map[string][]time.Time // the expected rounds of each key
	arrived   []harness.Arrival      // without headers
	first     usage                  // after the first day
}

func newMonth(t *testing.T, dir string, size, days int) *month {
	t.Helper()
	rates, err := deliver.ParseRates("mail.bulk=5")
	natstest.NoError(t, err)
	m := &month{
		server: natstest.Run(t, dir), size: size, days: days, random: rand.New(rand.NewPCG(uint64(size), 1)),
		begin: time.Now(), due: make(map[string]time.Time), cancelled: make(map[string]bool),
		series: make(map[string][]time.Time),
		cfg: broker.Config{
			Ladder: harness.Ladder(t, "1s 5s 30s 5m 30m 1h 6h 1d"), RetryLadder: harness.Ladder(t, "1s 1m 10m"), Attempts: 1000,
			Timers: true, TimerHistory: time.Minute, Secrets: []string{monthSecrets[0]}, Rates: rates,
			Journal: time.Hour,
		},
	}
	if size > 1 {
		m.cfg.Leaser = harness.Together
	}
	m.Client = harness.NewClient(t, m.server)
	m.Target("SHOP", "shop.>")
	m.Target("MAIL", "mail.>")
	m.start()
	m.recur("hourly", "Delay-Cron", "0 * * * *")
	m.recur("daily", "Delay-Cron", "30 9 * * *", "Delay-Time-Zone", "Europe/Berlin")
	m.recur("weekly", "Delay-Cron", "0 12 * * 1") // pending through the rotation of the secret
	m.recur("nightly", "Delay-Cron", "30 2 * * *", "Delay-Time-Zone", "Europe/Berlin")
	return m
}

// recur sets a series, and records the times at which the series must fire.
func (m *month) recur(key string, headers ...string) {
	m.T.Helper()
	m.Publish("delaytimer."+key+".shop.report", key, headers...)
	words := timetable.Settings{Zone: "UTC"}
	for h := range slices.Chunk(headers, 2) {
		switch h[0] {
		case "Delay-Cron":
			words.Cron = h[1]
		case "Delay-Time-Zone":
			words.Zone = h[1]
		}
	}
	table, err := timetable.Parse(words)
	natstest.NoError(m.T, err)
	for at := time.Now(); ; {
		next, ok := table.Next(time.Time{}, at)
		if !ok || !next.Before(m.end()) {
			return
		}
		m.series[key] = append(m.series[key], next)
		at = next
	}
}

func (m *month) end() time.Time { return m.begin.Add(time.Duration(m.days) * 24 * time.Hour) }

func (m *month) start() {
	m.brokers = harness.StartBrokers(m.T, m.server, m.size, m.cfg)
}

// restart replaces the brokers one after the other, with a changed configuration.
func (m *month) restart(change func(*broker.Config)) {
	change(&m.cfg)
	for n, b := range m.brokers {
		b.Stop()
		m.retired++
		m.brokers[n] = harness.StartBroker(m.T, m.server, m.cfg)
		time.Sleep(12 * time.Second)
	}
}

// liveADay runs the shop for a day.
func (m *month) liveADay() {
	m.T.Helper()
	for hour := range 24 {
		m.event(hour)
		for range 1 + m.random.IntN(3) {
			m.order()
		}
		at := m.begin.Add(time.Duration(m.day*24+hour+1) * time.Hour)
		for time.Until(at) > 10*time.Minute {
			time.Sleep(time.Minute + time.Duration(m.random.Int64N(int64(8*time.Minute))))
			m.order()
		}
		time.Sleep(time.Until(at) + time.Second)
	}
	if m.day == 0 {
		m.first = m.usage()
	}
	if m.day%4 == 3 {
		m.collect("SHOP")
	}
}

// event plays the event of an hour, if there is one. The events repeat every four days.
func (m *month) event(hour int) {
	m.T.Helper()
	switch at := [2]int{m.day % 4, hour}; at {
	case [2]int{0, 12}:
		m.restart(func(c *broker.Config) { c.Ladder = harness.Ladder(m.T, "1s 10s 1m 15m 2h 12h") })
	case [2]int{2, 12}:
		m.restart(func(c *broker.Config) { c.Ladder = harness.Ladder(m.T, "1s 5s 30s 5m 30m 1h 6h 1d") })
	case [2]int{0, 22}: // the mail server is down for a night
		m.collect("MAIL")
		m.Remove("MAIL")
	case [2]int{1, 6}:
		m.Target("MAIL", "mail.>")
	case [2]int{1, 10}:
		m.operate(harness.MustPause, "shop.promo")
		m.operate(harness.MustPause, "shop.held") // lasts through the rotation of the secret
	case [2]int{1, 13}:
		m.operate(harness.MustResume, "shop.promo")
	case [2]int{1, 15}: // only the server restarts
		m.server.Restart(20 * time.Second)
		time.Sleep(10 * time.Second)
	case [2]int{1, 17}: // a newsletter to many, at the target's rate
		for n := range 60 {
			m.publishIn(fmt.Sprintf("letter-%d-%d", m.day, n), "mail.bulk", time.Minute)
		}
	case [2]int{1, 20}:
		m.restart(func(c *broker.Config) { c.Secrets = []string{m.secret(0), m.secret(1)} })
	case [2]int{1, 22}:
		m.restart(func(c *broker.Config) { c.Secrets = []string{m.secret(1), m.secret(0)} })
	case [2]int{2, 20}: // a restart without a change
		m.restart(func(*broker.Config) {})
	case [2]int{2, 23}: // the new secret has been sealing for longer than the longest delay
		m.restart(func(c *broker.Config) { c.Secrets = []string{m.secret(1)} })
	case [2]int{3, 10}:
		m.publishIn(fmt.Sprintf("held-%d", m.day), "shop.held", time.Second)
	case [2]int{3, 20}:
		held := func(a harness.Arrival) bool { return a.Body == fmt.Sprintf("held-%d", m.day) }
		if slices.ContainsFunc(m.Arrivals("SHOP"), held) {
			m.T.Error("a message for a paused target was delivered")
		}
		m.operate(harness.MustResume, "shop.held")
	}
}

// secret returns the secret with which this block of four days begins (next is 0), or ends (next is 1).
func (m *month) secret(next int) string { return monthSecrets[(m.day/4+next)%2] }

// order sets a timeout, which most customers cancel. Some orders also have a reminder, a promotion or a mail.
func (m *month) order() {
	m.T.Helper()
	m.orders++
	id := fmt.Sprintf("order-%d", m.orders)
	if m.orders%4 == 0 {
		m.publishIn(id+"-reminder", "shop.reminder", 24*time.Hour)
	}
	if m.orders%5 == 0 {
		m.publishIn(id+"-promo", "shop.promo", time.Duration(m.random.Int64N(int64(2*time.Hour))))
	}
	if m.orders%3 == 0 {
		m.publishIn(id+"-mail", "mail.one", 5*time.Minute)
	}
	subject := "delaytimer." + id + ".shop.expire"
	g := m.Publish(subject, id, "Delay-For", "30m").Sequence
	due := time.Now().Add(30 * time.Minute)
	switch n := m.random.IntN(20); {
	case n < 16: // paid
		if m.PublishIf(g, subject, "", "Delay-Cancel", "paid") == 0 {
			m.T.Errorf("%s: the stream refused a cancel half an hour before the due time", id)
		}
		m.cancelled[id] = true
		return
	case n < 18: // the customer asks for more time
		if m.PublishIf(g, subject, id, "Delay-For", "45m") == 0 {
			m.T.Errorf("%s: the stream refused a move half an hour before the due time", id)
		}
		due = time.Now().Add(45 * time.Minute)
	}
	m.due[id] = due
}

// publishIn requests a delivery after a delay, or up to a second later.
func (m *month) publishIn(body, target string, in time.Duration) {
	m.T.Helper()
	in = in.Truncate(time.Second) + time.Second
	m.Publish("delayin."+in.String()+"."+target, body)
	m.due[body] = time.Now().Add(in)
}

// operate pauses or resumes a pattern, as an operator.
func (m *month) operate(verb func(testing.TB, *inspect.Inspector, string), pattern string) {
	m.T.Helper()
	i, err := inspect.Open(m.server.Connect(), m.cfg)
	natstest.NoError(m.T, err)
	defer i.Close()
	verb(m.T, i, pattern)
}

// collect moves the arrivals out of a target's stream.
func (m *month) collect(stream string) {
	m.T.Helper()
	for _, a := range m.Arrivals(stream) {
		a.Header = nil
		m.arrived = append(m.arrived, a)
	}
	m.Purge(stream)
}

// usage has the figures that must not grow from day to day.
type usage struct {
	Streams, Consumers, Goroutines int
	Heap                           int // bytes
}

func (m *month) usage() usage {
	m.T.Helper()
	synctest.Wait()
	u := usage{Goroutines: runtime.NumGoroutine(), Heap: natstest.Heap()}
	for info := range m.JS.ListStreams(context.Background()).Info() {
		u.Streams++
		u.Consumers += info.State.Consumers
	}
	return u
}

// check waits until all messages have arrived, and compares.
func (m *month) check() {
	t := m.T
	t.Helper()
	time.Sleep(time.Until(m.end().Add(26 * time.Hour)))
	synctest.Wait()
	m.collect("MAIL")
	m.collect("SHOP")
	last := m.usage()
	seen, rounds := make(map[string]bool), make(map[string][]time.Time)
	for _, a := range m.arrived {
		if a.At.Before(a.Due) {
			t.Errorf("%s is early: it arrived at %s, and was due at %s", a.Body, a.At, a.Due)
		}
		if a.Subject == "shop.report" {
			if a.Due.Before(m.end()) {
				rounds[a.Body] = append(rounds[a.Body], a.Due)
			}
			continue
		}
		if seen[a.Body] {
			t.Errorf("%s arrived twice", a.Body)
		}
		seen[a.Body] = true
		switch want, ok := m.due[a.Body]; {
		case m.cancelled[a.Body]:
			t.Errorf("%s arrived at %[2]s, although it was cancelled", a.Body, a.At)
		case !ok || !a.Due.Equal(want):
			t.Errorf("%s was due at %s, want %s", a.Body, a.Due, want)
		}
	}
	for body := range m.due {
		if !seen[body] {
			t.Errorf("%s did not come", body)
		}
	}
	for key, want := range m.series {
		if got := rounds[key]; !slices.EqualFunc(got, want, time.Time.Equal) {
			t.Errorf("the series %s fired at %v, want %v", key, got, want)
		}
	}
	m.CheckNoDead()
	t.Logf("%d orders, %d messages, %d timers cancelled; after the first day %+v, at the end %+v",
		m.orders, len(seen), len(m.cancelled), m.first, last)
	if last.Consumers > m.first.Consumers || last.Goroutines > m.first.Goroutines+m.first.Goroutines/10 ||
		last.Heap > 2*m.first.Heap+m.retired<<20 {
		t.Errorf("usage grew: %+v after the first day, %+v at the end", m.first, last)
	}
}
