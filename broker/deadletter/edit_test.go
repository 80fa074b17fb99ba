package deadletter

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"delaybroker/broker/message"
)

// TestResendEdited: the lane stores the message of a letter with the edited headers and body, and the letter is
// removed.
func TestResendEdited(t *testing.T) {
	bubble(t, func(t *testing.T, k *kit) {
		r := k.undelivered(1, "orders.expire", "body")
		change := Resend{Edit: Edit{Body: []byte("other"), HeaderEdit: message.HeaderEdit{
			Drop: []string{"X-Order"}, Set: message.Header{"X-New": {"1", "2"}, "Delay-Expires": {"10m"}},
		}}}
		l := k.onlyLetter(Query{})
		if err := k.DryRun(k.ctx(), l, change, time.Now()); err != nil {
			t.Fatal(err)
		}
		k.wantCount("DELAY_RETRY_1s", 0) // a dry run stores nothing
		k.wantCount("DELAY_DEAD", 1)
		if err := k.resend(l, change); err != nil {
			t.Fatal(err)
		}
		got := k.resent()
		if len(got) != 1 {
			t.Fatalf("%d messages in the lane, want one", len(got))
		}
		want := message.Header{"X-New": {"1", "2"}}
		if !reflect.DeepEqual(got[0].User, want) || !got[0].Expires.Equal(r.Due.Add(10*time.Minute)) || got[0].ID != r.ID {
			t.Errorf("got %+v, want the headers %v", got[0], want)
		}
		if got := string(k.bodies()[0]); got != "other" {
			t.Errorf("got the body %q, want other", got)
		}
		k.wantCount("DELAY_DEAD", 0)
	})
}

// TestResendWithAnotherEdit: after a crash between publish and removal, a resend with the same edit is a duplicate. A
// resend with another edit is no duplicate.
func TestResendWithAnotherEdit(t *testing.T) {
	bubble(t, func(t *testing.T, k *kit) {
		l := k.newLetter()
		edit := func(body string) Resend { return Resend{Edit: Edit{Body: []byte(body)}} }
		k.crash(l, edit("first"))
		k.crash(l, edit("first"))
		k.wantCount("DELAY_RETRY_1s", 1)
		if err := k.resend(l, edit("second")); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, body := range k.bodies() {
			got = append(got, string(body))
		}
		if strings.Join(got, " ") != "first second" {
			t.Errorf("got the bodies %q, want first and second", got)
		}
	})
}

// TestEditIsRefused: for an invalid edit, Resend and DryRun return the same error, and the letter is unchanged.
func TestEditIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, k *kit) {
		l := k.newLetter()
		for _, tt := range []struct {
			edit Edit
			want error
		}{
			{Edit{Body: make([]byte, 1<<20)}, ErrTooLarge},
			{Edit{HeaderEdit: message.HeaderEdit{Set: message.Header{"Delay-Id": {"x"}}}}, ErrEdit},
			{Edit{HeaderEdit: message.HeaderEdit{Drop: []string{"Nats-Msg-Id"}}}, ErrEdit},
		} {
			change := Resend{Edit: tt.edit}
			dryErr, err := k.DryRun(k.ctx(), l, change, time.Now()), k.resend(l, change)
			if !errors.Is(dryErr, tt.want) || !errors.Is(err, tt.want) {
				t.Errorf("got %v, and in a dry run %v, want %v", err, dryErr, tt.want)
			}
		}
		k.wantCount("DELAY_DEAD", 1)
		k.wantCount("DELAY_RETRY_1s", 0)
	})
}

// TestEditSetsTime: an edit can set the due time of a letter whose request had no valid time.
func TestEditSetsTime(t *testing.T) {
	now := deathTime.Add(24 * time.Hour)
	l := letter(func(l *Letter) { l.Code, l.Due = message.BadTime, l.Accepted })
	change := Resend{Edit: Edit{HeaderEdit: message.HeaderEdit{
		Set: message.Header{"Delay-Until": {now.Add(time.Hour).Format(time.RFC3339)}},
	}}}
	resent, err := l.resentMessage(policy, change, now)
	if err != nil || !resent.Due.Equal(now.Add(time.Hour)) {
		t.Errorf("got due %v and %v, want the time in the edit", resent.Due, err)
	}
}
