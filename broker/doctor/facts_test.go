package doctor

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/config"
	"delaybroker/broker/lease"
	"delaybroker/broker/streams"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// finds fails unless a check has a finding with this severity and part of the detail.
func (f Facts) finds(t *testing.T, check string, state Severity, part string) {
	t.Helper()
	for _, one := range f.Findings() {
		if one.Check == check && one.Severity == state && strings.Contains(one.Detail, part) {
			return
		}
	}
	t.Errorf("no finding %s, %s with %q in %+v", check, state, part, f.Findings())
}

// TestGatherChangesNothing: Gather tests for free space, and stores nothing. If no instance answers, Gather waits for a
// takeover.
func TestGatherChangesNothing(t *testing.T) {
	withStreams(t, server.Permissions{}, func(t *testing.T, s *natstest.Server, cfg broker.Config) {
		i := harness.InspectAs(t, s, cfg, "")
		began := time.Now()
		f := Gather(t.Context(), i, Host{Memory: config.Memory{Runtime: config.NoLimit}}, nil)
		natstest.CheckElapsed(t, began, time.Second)
		f.finds(t, "streams", Fine, "all 9 exist")
		f.finds(t, "storage", Fine, "the server accepted a trial message")
		f.finds(t, "lanes", Critical, "no broker reads any of the 6 lanes")
		f.finds(t, "rights", Fine, "all permissions that the broker needs")
		v, err := i.Lanes(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range v.Lanes {
			if l.Info.State.LastSeq != 0 {
				t.Errorf("%s has stored %d messages, want none", l.Stream, l.Info.State.LastSeq)
			}
		}
	})
}

// TestGatherGoesOn: after a refused request, Gather sends the other requests.
func TestGatherGoesOn(t *testing.T) {
	denied := natstest.DenyPublish("$JS.API.INFO", "delayctl.status")
	withStreams(t, denied, func(t *testing.T, s *natstest.Server, cfg broker.Config) {
		began := time.Now()
		f := Gather(t.Context(), harness.InspectAs(t, s, cfg, natstest.LimitedUser), Host{}, nil)
		natstest.CheckElapsed(t, began, 0)
		f.finds(t, "rights", Skipped, "the server refused requests that only doctor sends: $JS.API.INFO, delayctl.status")
		f.finds(t, "streams", Fine, "all 9 exist")
	})
}

// TestLaneCountWithoutAnswers: a user may not send requests to the instances, and the claim shows that one works. Then
// the finding has the number of lanes, and says that their readers are unknown.
func TestLaneCountWithoutAnswers(t *testing.T) {
	withStreams(t, natstest.DenyPublish("delayctl.status"), func(t *testing.T, s *natstest.Server, cfg broker.Config) {
		claim, err := json.Marshal(lease.Claim{Active: lease.Instance{ID: "a"}})
		natstest.NoError(t, err)
		_, err = s.JetStream(s.Connect()).Publish(t.Context(), "delaysys.owners.claim", claim)
		natstest.NoError(t, err)
		f := Gather(t.Context(), harness.InspectAs(t, s, cfg, natstest.LimitedUser), Host{}, nil)
		f.finds(t, "lanes", Skipped, "6 lanes, 0 messages pending; the owner of 6 of them ")
		f.finds(t, "lanes", Skipped, "is unknown: this user may not ask the instances: nats: permissions violation")
	})
}

// TestNoTrialForWriteLink: if the write link has its own user, doctor sends no trial.
func TestNoTrialForWriteLink(t *testing.T) {
	withStreams(t, natstest.DenyPublish("delaysys.hop.>"), func(t *testing.T, s *natstest.Server, cfg broker.Config) {
		connect := func() (*nats.Conn, error) { return s.Connect(), nil }
		fail := func() (*nats.Conn, error) { return nil, errors.New("no such file") }
		links := []Link{
			{Name: "write", Setting: "SOME_VARIABLE", Connect: connect},
			{Name: "read", Setting: "OTHER_VARIABLE", Connect: fail},
		}
		f := Gather(t.Context(), harness.InspectAs(t, s, cfg, natstest.LimitedUser), Host{}, links)
		f.finds(t, "storage", Skipped, "was not tested")
		f.finds(t, "rights", Fine, "all permissions that the broker needs")
		f.finds(t, "connection", Fine, "to write")
		f.finds(t, "connection", Critical, "to read: no such file")
	})
}

// TestNoTrial: with Host.SkipTrial, doctor publishes nothing, although the user may publish.
func TestNoTrial(t *testing.T) {
	withStreams(t, server.Permissions{}, func(t *testing.T, s *natstest.Server, cfg broker.Config) {
		f := Gather(t.Context(), harness.InspectAs(t, s, cfg, ""), Host{SkipTrial: true}, nil)
		f.finds(t, "storage", Skipped, "was not tested")
	})
}

// TestSkippedHidesNothing: a skipped check suppresses no finding of another check.
func TestSkippedHidesNothing(t *testing.T) {
	f := viewWith(lateLane())
	f.names, f.refused = names("delay"), []string{"Publish to $JS.API.STREAM.LIST"}
	f.Found, f.Infos = []streams.Spec{{Stream: "DELAY_30m"}}, map[string]*jetstream.StreamInfo{"DELAY_30m": {}}
	f.apiPrefix, f.account = "$JS.API", &jetstream.AccountInfo{}
	late := func(findings []Finding) bool {
		return slices.ContainsFunc(findings, func(f Finding) bool { return f.Check == "lanes" && f.Severity == Warn })
	}
	if late(f.Findings()) {
		t.Error("without --skip, doctor reports late lanes, although a missing permission is the cause")
	}
	if findings := f.Findings("rights"); !late(findings) {
		t.Errorf("with --skip rights, got %+v, want a finding about late lanes", findings)
	}
}

// TestNoAnswerSubscription: a session that may not receive answers sends no request, and does not wait for answers.
func TestNoAnswerSubscription(t *testing.T) {
	denied := server.Permissions{Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX_other.>"}}}
	withStreams(t, denied, func(t *testing.T, s *natstest.Server, cfg broker.Config) {
		began := time.Now()
		f := Gather(t.Context(), harness.InspectAs(t, s, cfg, natstest.LimitedUser), Host{}, nil)
		natstest.CheckElapsed(t, began, 0)
		for _, err := range []error{f.accountErr, f.findErr} {
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("got %v, want the refusal of the subscription", err)
			}
		}
		got := checkRights(f)
		if len(got) != 1 || got[0].Severity != Critical || !strings.Contains(got[0].Detail, "Subscription to _INBOX.") {
			t.Errorf("got %+v, want the missing permission", got)
		}
	})
}

// TestForgedAnswerIsNotBelieved: a client that may publish below the subject of the answers cannot forge the users, the
// versions and the refusals of a broker.
func TestForgedAnswerIsNotBelieved(t *testing.T) {
	situation{name: "a forged answer", set: func(sc *scene) {
		sc.serve()
		const lie = `{"instance": "liar", "version": "v0", "format": 1, "users": ["limited"], "lanes": [],` +
			` "refused": [{"link": "control", "right": "Publish to orders.lie"}]}`
		if _, err := sc.client.Subscribe("delayctl.status", func(m *nats.Msg) { _ = m.Respond([]byte(lie)) }); err != nil {
			sc.t.Fatal(err)
		}
	}}.play(t, func(t *testing.T, found []Finding) {
		reported := false
		for _, f := range found {
			if strings.Contains(f.Detail, "orders.lie") || f.Severity > Fine {
				t.Errorf("got %s %s: %s; want no effect of the forged answer", f.Severity, f.Check, f.Detail)
			}
			reported = reported || f.Check == "versions" && strings.HasSuffix(f.Detail, "have no valid seal: liar")
		}
		if !reported {
			t.Error("no finding reports the ignored answer")
		}
	})
}
