package operation

import (
	"context"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/service"
	"delaybroker/broker/timer/store"
)

// This file is the door of the service: operations as answers to requests on NATS subjects.

// requestBounds are the limits of a request.
var requestBounds = Bounds{Rows: 100, MaxRows: store.MaxLimit, Read: 50_000, MaxRead: 500_000, AllStates: true}

// Endpoints returns the endpoints of the operations on timers. Schedules are the rules of DELAY_SCHEDULES.
func Endpoints(timers *store.Timers, schedules message.ScheduleRules) (endpoints []service.Endpoint) {
	names := timers.Policy.Names
	d := &Desk{Timers: timers, OnePage: true}
	for _, o := range All {
		if o.Endpoint != "" {
			root := names.TimerCall(o.Endpoint)
			endpoints = append(endpoints, service.Endpoint{
				Name: o.Endpoint, Root: root, Subjects: []string{root + "*.>"},
				Tenant: func(rest string) string { return tenantOfTimer(rest, schedules) },
				Answer: func(ctx context.Context, rest string, m *nats.Msg) (any, error) {
					return o.answerOne(ctx, d, rest, m)
				},
			})
		}
	}
	for _, o := range All {
		if o.ManyEndpoint == "" {
			continue
		}
		root := names.Call(o.ManyEndpoint)
		endpoints = append(endpoints, service.Endpoint{
			Name: o.ManyEndpoint, Root: root, Subjects: []string{root + ".>", root}, Many: true,
			Tenant: func(rest string) string { return message.Tenant(strings.TrimPrefix(rest, ".")) },
			Answer: func(ctx context.Context, rest string, m *nats.Msg) (any, error) {
				return o.answerMany(ctx, d, strings.TrimPrefix(rest, "."), m)
			},
		})
	}
	return endpoints
}

// Calls returns the answers to the requests about lanes, messages and forecasts, by the end of their subjects. Each
// request has its own inspector, which is closed after the answer.
func Calls(open func(context.Context) (*inspect.Inspector, error)) map[string]service.Call {
	calls := make(map[string]service.Call)
	for _, o := range All {
		if o.Call == "" {
			continue
		}
		calls[o.Call] = func(ctx context.Context, rest string, body []byte) (any, error) {
			u := o.New(requestBounds)
			values, err := parseJSON(body)
			if err != nil {
				return nil, err
			}
			if len(o.Words) > 0 {
				values[o.Words[0]] = []string{rest}
			}
			if err := u.SetValues(values); err != nil {
				return nil, err
			}
			i, err := open(ctx)
			if err != nil {
				return nil, err
			}
			defer i.Close()
			return u.answer(ctx, &Desk{Inspector: i, Timers: i.Timers(), OnePage: true, HideContent: true})
		}
	}
	return calls
}

// tenantOfTimer returns the tenant of a request about the timer with a name, which is <key>.<target>, or
// _schedule.<the schedule's subject>.
func tenantOfTimer(name string, schedules message.ScheduleRules) string {
	key, rest, _ := strings.Cut(name, ".")
	if key == message.ScheduleKey {
		return schedules.Tenant(rest)
	}
	return message.Tenant(rest)
}

// answerOne answers a request about one timer. The subject has the name, and is the right to make the request, so the
// body must not select anything.
func (o Operation) answerOne(ctx context.Context, d *Desk, rest string, m *nats.Msg) (any, error) {
	if o.Message {
		return o.answerSet(ctx, d, rest, m)
	}
	u := o.New(requestBounds)
	values, err := u.bodyOf(m.Data, func(p *Param) bool { return p.Selects })
	if err != nil {
		return nil, err
	}
	for name, header := range map[string]string{
		"word": message.HeaderWord, "in": message.HeaderFor, "at": message.HeaderUntil,
	} {
		if value := m.Header.Get(header); value != "" && u.Param(name) != nil {
			if len(values["in"])+len(values["at"])+len(values["by"]) > 0 && name != "word" {
				return nil, invalid("want one of in, at, by, Delay-For and Delay-Until")
			}
			if len(values[name]) == 0 {
				values[name] = []string{value}
			}
		}
	}
	key, target, _ := strings.Cut(rest, ".")
	if key == message.ScheduleKey { // the subject of the request gives the right, whatever the schedule's target
		key, target = message.ScheduleName(target), ""
	}
	values[o.Words[0]], values[o.Words[1]] = []string{key}, []string{target}
	if err := u.SetValues(values); err != nil {
		return nil, err
	}
	return u.answer(ctx, d)
}

// answerSet answers a request with the message that a client could also publish to set the timer. A header that would
// have no effect is an error: the client relies on it. A header of the server, such as Nats-Trace-Dest, would have its
// effect with our rights.
func (o Operation) answerSet(ctx context.Context, d *Desk, rest string, m *nats.Msg) (any, error) {
	key, target, _ := strings.Cut(rest, ".")
	values := map[string][]string{"key": {key}, "target": {target}, "body": {string(m.Data)}}
	block, problem := message.SplitHeader(message.Header(m.Header), false)
	if problem != nil {
		return nil, change.Refuse(problem)
	}
	for name, all := range m.Header {
		known := message.CanonicalName(name)
		if name != message.HeaderExpected && known == "" && block.User[name] == nil && block.UnknownName == "" {
			return nil, invalid("the header %.64q is reserved, and has no effect here: leave it out", name)
		}
		for _, value := range all {
			switch name {
			case message.HeaderWord:
				values["word"] = []string{value}
			case message.HeaderExpected:
				if _, err := strconv.ParseUint(value, 10, 63); err != nil {
					return nil, invalid("%s %.40q: want the sequence of a set, or 0", name, value)
				}
				if values["if"] = []string{value}; value == "0" {
					values["if"] = []string{"absent"}
				}
			default:
				values["header"] = append(values["header"], name+": "+value)
			}
		}
	}
	u := o.New(requestBounds)
	if err := u.SetValues(values); err != nil {
		return nil, err
	}
	return u.answer(ctx, d)
}

// answerMany answers a request about the timers that match. The subject has the first tokens of their targets.
func (o Operation) answerMany(ctx context.Context, d *Desk, prefix string, m *nats.Msg) (any, error) {
	u := o.New(requestBounds)
	values, err := u.bodyOf(m.Data, func(p *Param) bool { return p.Single || p.Name == "prefix" || p.Name == "all" })
	if err != nil {
		return nil, err
	}
	var dry bool
	for _, text := range values["dry_run"] {
		if err := flag(&dry, "dry-run", "").Set(text); err != nil {
			return nil, invalid("dry_run %.40q: %v", text, err)
		}
	}
	delete(values, "dry_run")
	if strings.ContainsAny(prefix, "*>") { // a permission for orders.* would allow orders.>, too
		return nil, invalid("%s: want the first tokens of the targets, without wildcards", m.Subject)
	}
	if target := strings.Join(values["target"], ""); target != "" && prefix != "" && target != prefix &&
		!strings.HasPrefix(target, prefix+".") {
		return nil, invalid("target %q: want one that begins with %s, as the subject does", target, prefix)
	}
	values["prefix"] = []string{prefix}
	if u.Act != nil {
		values["all"] = []string{"true"}
	}
	if err := u.SetValues(values); err != nil {
		return nil, err
	}
	if !dry {
		return u.answer(ctx, d)
	}
	p, err := u.Plan(ctx, d)
	return p.Result.Value, err
}

// bodyOf parses a request's body. A field that denied returns true for is unknown, as is one without a parameter: a
// request with "dryrun" in place of "dry_run" must not change anything.
func (u *Use) bodyOf(body []byte, denied func(p *Param) bool) (map[string][]string, error) {
	values, err := parseJSON(body)
	for name := range values {
		p := u.Param(name)
		if p != nil && denied(p) || p == nil && (name != "dry_run" || u.Param("all") == nil) {
			return nil, invalid("the request is not understood: unknown field %q", name)
		}
	}
	return values, err
}

// answer returns the answer to a request.
func (u *Use) answer(ctx context.Context, d *Desk) (any, error) {
	if u.Look == nil {
		r, err := u.Act(ctx, d)
		return r.Value, err
	}
	var row any
	end, err := u.Look(ctx, d, func(r any) error {
		row = r
		return nil
	})
	if end.Answer != nil {
		return end.Answer, err
	}
	return row, err
}
