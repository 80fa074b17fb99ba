package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/lane"
	"delaybroker/broker/layout"
)

// gather asks everything, and goes on when something is not answered.
func (a *app) gather(ctx context.Context) (facts, error) {
	cfg, err := readConfig()
	if err != nil {
		return facts{}, err
	}
	f := facts{cfg: cfg, build: readBuild(), memory: readMemory(), ready: cfg.askReady(ctx)}
	settings, err := readSettings()
	if err != nil {
		return facts{}, err
	}
	o, err := a.operate(ctx)
	if err != nil {
		f.connectErr = err
		return f, nil
	}
	defer o.close()
	i := &inquiry{operator: o}
	o.nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { i.complain(err) })
	for _, err := range o.heard() { // a subscription that is refused is not tried again
		i.complain(err)
	}
	i.run(ctx, &f)
	for _, l := range settings.linkContexts() {
		if access, apart := cfg.apart[l.link]; apart {
			user := linkUser{link: l.link, variable: l.variable}
			user.ask(ctx, access)
			f.apart = append(f.apart, user)
		}
	}
	return f, nil
}

// askReady asks the broker on this host, if there should be one that can be asked.
func (c config) askReady(ctx context.Context) probed {
	if _, port, err := net.SplitHostPort(c.httpAddr); err != nil || port == "0" {
		return probed{}
	}
	r := probed{url: "http://" + dialable(c.httpAddr) + "/readyz"}
	r.answer, r.err = askHealth(ctx, r.url)
	return r
}

// ask connects as the link does, and asks the server who that is.
func (l *linkUser) ask(ctx context.Context, access access) {
	nc, err := nats.Connect(access.url, append([]nats.Option{nats.Name("delaybroker doctor")}, access.options...)...)
	if err != nil {
		l.err = err
		return
	}
	defer nc.Close()
	l.inbox = inboxOf(nc)
	i := &inquiry{operator: &operator{session: &session{nc: nc}}}
	nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { i.complain(err) })
	_ = i.question(ctx, func(ctx context.Context) (err error) { // not known then
		l.user, err = i.askUser(ctx)
		return err
	})
}

// inboxOf is the prefix of a connection's inboxes.
func inboxOf(nc *nats.Conn) string {
	return cmp.Or(nc.Opts.InboxPrefix, strings.TrimSuffix(nats.InboxPrefix, "."))
}

// An inquiry asks one question after the other. A question that the server refuses is not answered: the refusal comes
// apart from it, and ends the waiting.
type inquiry struct {
	*operator

	mu      sync.Mutex // guards what follows
	refused []string
	refuse  context.CancelCauseFunc // nil before the first question
	deaf    error                   // we may not listen to answers, so there is no point in asking
}

func (i *inquiry) complain(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	_, what, _ := strings.Cut(err.Error(), "Violation for ")
	what = strings.ReplaceAll(what, `"`, "")
	if subject, ok := strings.CutPrefix(what, "Subscription to "); ok && !strings.HasPrefix(subject, i.names.StatusAnswers()) {
		i.deaf = err
	}
	i.refused = append(i.refused, what)
	if i.refuse != nil {
		i.refuse(err)
	}
}

// question runs f until it is answered, refused or takes too long.
func (i *inquiry) question(ctx context.Context, f func(ctx context.Context) error) error {
	return i.questionWithin(ctx, apiPatience, f)
}

func (i *inquiry) questionWithin(ctx context.Context, patience time.Duration, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ctx, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	i.mu.Lock()
	i.refuse = refuse
	deaf := i.deaf
	i.mu.Unlock()
	if deaf != nil {
		return deaf
	}
	if err := f(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	return nil
}

func (i *inquiry) run(ctx context.Context, f *facts) {
	f.clustered = i.nc.ConnectedClusterName() != ""
	f.server, f.serverName, f.version = serverOf(i.nc), i.nc.ConnectedServerName(), i.nc.ConnectedServerVersion()
	f.apiPrefix, f.prefix, f.inbox = i.apiPrefix, i.names.Prefix(), inboxOf(i.nc)
	f.want = i.wanted()
	_ = i.question(ctx, func(ctx context.Context) (err error) { // without it, only what is refused is known
		f.user, err = i.askUser(ctx)
		return err
	})
	f.accountErr = i.question(ctx, func(ctx context.Context) (err error) {
		f.account, err = i.js.AccountInfo(ctx)
		return err
	})
	f.findErr = i.question(ctx, func(ctx context.Context) (err error) {
		f.found, f.all, err = i.streams.Provisioner(i.js).Find(ctx)
		return err
	})
	if f.findErr != nil {
		f.all = nil
	} else {
		var n instances
		n.refused = i.questionWithin(ctx, unownedDoctor+apiPatience, func(ctx context.Context) (err error) {
			n, err = i.askAll(ctx, lanesOf(f.found), unownedDoctor)
			return err
		})
		f.instances = n
		f.view = i.lookAt(ctx, f.want, f.found, f.all, n)
		f.clocks = i.lookAtClocks(ctx, f.view)
		f.trial = i.try(ctx, f)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	f.refused = i.refused
}

// askUser asks the server who we are. Servers without a system account do not answer.
func (i *inquiry) askUser(ctx context.Context) (*userInfo, error) {
	m, err := i.nc.RequestWithContext(ctx, "$SYS.REQ.USER.INFO", nil)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data *userInfo `json:"data"`
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return nil, fmt.Errorf("decode who we are: %w", err)
	}
	return answer.Data, nil
}

// lookAtClocks compares our clock with that of each leader. The quickest of some answers is the truest.
func (i *inquiry) lookAtClocks(ctx context.Context, v lanesView) []clockLook {
	const looks = 3
	var all []clockLook
	seen := make(map[string]bool)
	for _, l := range v.Lanes {
		if l.info == nil {
			continue
		}
		leader := lane.SampleOf(l.info, time.Time{}).Leader
		if seen[leader] {
			continue
		}
		seen[leader] = true
		best := clockLook{leader: leader, within: time.Hour}
		for range looks {
			_ = i.question(ctx, func(ctx context.Context) error { // the next may answer
				asked := time.Now()
				s, err := i.js.Stream(ctx, l.Stream)
				if err != nil {
					return err
				}
				if half := time.Since(asked) / 2; half < best.within {
					best.offset, best.within = s.CachedInfo().TimeStamp.Sub(asked.Add(half)), half
				}
				return nil
			})
		}
		if best.within < time.Hour {
			all = append(all, best)
		}
	}
	return all
}

// try publishes as the broker does when it moves a message, as a trace: a server that knows tracing goes through all the
// checks and stores nothing. A full store cannot be seen otherwise. Servers that might not know it, and other accounts,
// where the trace may be cut off, are not tried.
func (i *inquiry) try(ctx context.Context, f *facts) trial {
	const domestic = "$JS.API"
	if f.apiPrefix != domestic || !knownAboveFloor(f.version) || f.cfg.apart["write"].url != "" { // who is not to write
		return trial{}
	}
	var level string
	for _, s := range f.found {
		if s.Kind == layout.Level && s.Format <= layout.Format && s.Broken == nil {
			level = s.Name
		}
	}
	if level == "" {
		return trial{}
	}
	var t trial
	_ = i.question(ctx, func(ctx context.Context) error { // unknown then
		inbox := i.nc.NewInbox()
		sub, err := i.nc.SubscribeSync(inbox)
		if err != nil {
			return err
		}
		defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection
		msg := nats.NewMsg(i.names.Hop(level, "delaybroker.doctor"))
		msg.Reply = inbox
		msg.Header.Set("Nats-Trace-Dest", inbox)
		msg.Header.Set("Nats-Trace-Only", "true")
		if err := i.nc.PublishMsg(msg); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return err
		}
		var answer struct {
			Error  *jetstream.APIError `json:"error"`
			Events []struct {
				Type  string `json:"type"`
				Error string `json:"error"`
			} `json:"events"`
		}
		if err := json.Unmarshal(m.Data, &answer); err != nil {
			return err
		}
		for _, e := range answer.Events {
			if e.Type == "in" && e.Error != "" { // we may not publish there, which says nothing of the store
				return errors.New(e.Error)
			}
		}
		if t.known = true; answer.Error != nil {
			t.refusal = answer.Error.Description
		}
		return nil
	})
	return t
}
