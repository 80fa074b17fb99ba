package pauses

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/pause"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestQuietHours: in quiet hours, nothing is sent to the targets, also right after a kill, and on the next day. The
// messages that became due go out afterwards, in the order of their due times. All others arrive exactly when they are
// due. When the pattern is resumed, its hours end.
func TestQuietHours(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) { // the clock of a bubble begins at midnight
		cfg := broker.Config{Instance: "one", Log: harness.NoLog}
		midnight := time.Now()
		c, o := harness.NewClient(t, s), harness.Operator(t, s)
		midnight = midnight.Truncate(time.Minute)
		b := harness.StartBroker(t, s, cfg)
		c.Target("MAIL", "mail.>")
		c.Target("OTHER", "other.>")
		hours, err := pause.ParseHours("01:00-02:00", "", "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Pause(context.Background(), "mail.>", hours); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Pause(context.Background(), "mail.>", hours); !errors.Is(err, pause.ErrPaused) {
			t.Errorf("the same hours a second time: %v", err)
		}
		const messages = 3 * 4 * 4 // every fifteen minutes of the first four hours of three days, one second after the minute
		for i := range messages {
			due := midnight.Add(time.Duration(i/16)*24*time.Hour + time.Duration(i%16)*15*time.Minute + time.Second)
			if i == 0 {
				due = due.Add(time.Minute)
			}
			for _, target := range []string{"mail.x", "other.x"} {
				c.Publish(fmt.Sprintf("delayin.%dms.%s", time.Until(due).Milliseconds(), target), fmt.Sprintf("%06d", i))
			}
		}
		time.Sleep(time.Until(midnight.Add(90 * time.Minute)))
		b.Crash()
		b = harness.StartBroker(t, s, cfg)
		// No broker runs during the rest of a day: its idle lanes would cost processor time.
		skipDay := func(day int) {
			time.Sleep(time.Until(midnight.Add(time.Duration(day-1)*24*time.Hour + 4*time.Hour + time.Minute)))
			b.Stop()
			time.Sleep(time.Until(midnight.Add(time.Duration(day)*24*time.Hour - 10*time.Minute)))
			b = harness.StartBroker(t, s, cfg)
		}
		skipDay(1)
		time.Sleep(time.Until(midnight.Add(24*time.Hour + 30*time.Minute)))
		b.Stop() // and the next one starts within the hours
		time.Sleep(time.Until(midnight.Add(25*time.Hour + 30*time.Minute)))
		b = harness.StartBroker(t, s, cfg)
		skipDay(2)
		time.Sleep(time.Until(midnight.Add(48*time.Hour + 30*time.Minute)))
		harness.MustResume(t, o, "mail.>")
		if pauses, err := o.Pauses(context.Background()); err != nil || len(pauses) > 0 {
			t.Errorf("after the resumption: %v, %v", pauses, err)
		}
		time.Sleep(4 * time.Hour)

		got := c.Arrivals("MAIL")
		harness.CheckInOrder(t, got, messages)
		for _, a := range got {
			due, at := a.Due.Sub(midnight), a.At.Sub(midnight)
			day := due.Truncate(24 * time.Hour)
			begin, end := day+time.Hour, day+2*time.Hour
			switch quiet := due >= begin && due < end && day < 48*time.Hour; {
			case quiet && (at < end || at > end+time.Second):
				t.Errorf("due at %s, in the quiet hours: arrived at %s, want right after %s", due, at, end)
			case day == 24*time.Hour && due >= day+30*time.Minute && due < begin: // no broker ran
				if at < end {
					t.Errorf("due at %s, before the quiet hours: arrived at %s, in them", due, at)
				}
			case due >= end && due < end+2*time.Second: // the messages of the hours are sent before it
			case !quiet && at != due:
				t.Errorf("due at %s, outside the quiet hours: arrived at %s", due, at)
			}
		}
		for _, a := range c.Arrivals("OTHER") {
			if day := a.Due.Sub(midnight).Truncate(24 * time.Hour); day != 24*time.Hour && a.At != a.Due {
				t.Errorf("another target: due at %s, arrived at %s", a.Due.Sub(midnight), a.At.Sub(midnight))
			}
		}
		c.CheckNoDead()
		c.CheckEmpty()
	})
}

// TestQuietHoursBecomeAPause: pause without hours ends the hours of a pattern, and stops its targets at once.
func TestQuietHoursBecomeAPause(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{})
		c, o := harness.NewClient(t, s), harness.Operator(t, s)
		c.Target("MAIL", "mail.>")
		hours, err := pause.ParseHours("22:00-06:00", "Europe/Berlin", "mon-thu")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Pause(context.Background(), "mail.>", hours); err != nil {
			t.Fatal(err)
		}
		pauses, err := o.Pauses(context.Background())
		if err != nil || len(pauses) != 1 || pauses[0].State != pause.Open ||
			pauses[0].Hours.String() != "22:00-06:00 tz=Europe/Berlin days=mon-thu" {
			t.Errorf("got %+v, %v, want the open hours of a Saturday", pauses, err)
		}
		harness.MustPause(t, o, "mail.>")
		c.Publish("delay.1s.mail.x", "a")
		time.Sleep(10 * time.Minute)
		harness.CheckCount(t, c.Arrivals("MAIL"), 0)
		harness.MustResume(t, o, "mail.>")
		time.Sleep(time.Minute)
		harness.CheckBodies(t, c.Arrivals("MAIL"), "a")
	})
}
