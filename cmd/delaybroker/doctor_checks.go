package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/levels/lane"
)

const (
	clockWarn, clockCritical = time.Second, 10 * time.Second
	storeWarn                = 0.8 // of a limit; fullAt is critical
	lateWarn                 = 10 * time.Second
)

// checks are pure functions of the facts. One that has nothing to go by says nothing: another says why.
var checks = []func(facts) []finding{
	checkConnection, checkRights, checkServer, checkJetStream, checkStreams, checkDrift, checkStorage, checkReaders,
	checkClocks, checkDurability, checkDeadLetters, checkMemory,
}

func examine(f facts) []finding {
	var all []finding
	for _, check := range checks {
		all = append(all, check(f)...)
	}
	return all
}

func verdict(check string, state severity, do, format string, args ...any) []finding {
	return []finding{{Check: check, State: state, Detail: fmt.Sprintf(format, args...), Do: do}}
}

func checkConnection(f facts) []finding {
	const name = "connection"
	switch {
	case errors.Is(f.connectErr, nats.ErrAuthorization):
		return verdict(name, critical, "set NATS_CREDS, NATS_NKEY, or NATS_USER and NATS_PASSWORD", "%v", f.connectErr)
	case f.connectErr != nil:
		return verdict(name, critical, "start the server, or set NATS_URL to where it is; the other checks need it", "%v", f.connectErr)
	case f.user != nil && f.user.User != "":
		return verdict(name, fine, "", "%s as %s in account %s", f.server, f.user.User, f.user.Account)
	}
	return verdict(name, fine, "", "%s", f.server)
}

// permissions are a user's, as the server knows them. Without rules everything is allowed.
type permissions struct {
	Publish   *rules `json:"publish"`
	Subscribe *rules `json:"subscribe"`
}

type rules struct {
	Allow []string `json:"allow"`
	Deny  []string `json:"deny"`
}

func (r *rules) allow(subject string) bool {
	matches := func(pattern string) bool { return message.Match(pattern, subject) }
	return r == nil || !slices.ContainsFunc(r.Deny, matches) && (len(r.Allow) == 0 || slices.ContainsFunc(r.Allow, matches))
}

// A grant is a pattern to allow, and the subjects below it that the broker publishes on.
type grant struct {
	pattern  string
	subjects []string
}

// grants are what the broker needs to publish, targets apart.
func (f facts) grants() []grant {
	names, err := message.NewNames(f.prefix)
	if err != nil {
		return nil
	}
	var lanes, all, hops, dead []string
	for _, s := range f.want {
		all = append(all, s.Stream)
		switch s.Kind {
		case lane.Level:
			hops = append(hops, names.Hop(s.Name, "x"))
		case lane.Retry:
			hops = append(hops, names.Retry(s.Name, "x"))
		case lane.Dead:
			dead = append(dead, names.Dead(message.Undelivered, "x"), names.Dead(message.BadTarget, ""))
			continue
		}
		lanes = append(lanes, s.Stream)
	}
	api := func(verb, rest string, streams []string) grant {
		g := grant{pattern: f.apiPrefix + "." + verb + ".*" + rest}
		for _, s := range streams {
			g.subjects = append(g.subjects, f.apiPrefix+"."+verb+"."+s+strings.Replace(rest, ">", lane.ConsumerPrefix+"x", 1))
		}
		return g
	}
	alone := func(subject string) grant { return grant{subject, []string{subject}} }
	needed := []grant{
		alone(f.apiPrefix + ".STREAM.LIST"), alone(f.apiPrefix + ".STREAM.NAMES"),
		api("STREAM.INFO", "", lanes), api("STREAM.MSG.GET", "", lanes), api("STREAM.MSG.DELETE", "", lanes), api("STREAM.PURGE", "", lanes),
		api("CONSUMER.CREATE", ".>", lanes), api("CONSUMER.DELETE", ".>", lanes), api("CONSUMER.MSG.NEXT", ".>", lanes),
		{names.SysFilter(), hops}, {names.DeadFilter(), dead},
	}
	if f.cfg.broker.Provision {
		needed = append(needed, api("STREAM.CREATE", "", all), api("STREAM.UPDATE", "", all))
	}
	return needed
}

func checkRights(f facts) []finding {
	const name = "rights"
	if f.connectErr != nil {
		return nil
	}
	var refused, unasked []string
	for _, r := range f.refused {
		subject, isPublish := strings.CutPrefix(r, "Publish to ")
		ofBroker := func(g grant) bool { return slices.Contains(g.subjects, subject) }
		if isPublish && !slices.ContainsFunc(f.grants(), ofBroker) {
			unasked = append(unasked, subject)
		} else {
			refused = append(refused, r)
		}
	}
	if f.user != nil {
		refused = append(refused, f.lacks(f.user.Permissions)...)
	}
	slices.Sort(refused)
	refused = slices.Compact(refused)
	switch {
	case len(refused) > 0:
		return verdict(name, critical, "grant the broker's user these subjects", "refused: %s", few(refused))
	case len(unasked) > 0:
		return verdict(name, warn, "grant them to the user that runs doctor, to know more", "doctor may not ask: %s; the broker can do without", few(unasked))
	case f.user == nil:
		return verdict(name, fine, "", "nothing was refused that doctor asks; the server does not say more")
	}
	return verdict(name, fine, "", "all that the broker needs, targets apart")
}

// lacks names what permissions do not allow: by the pattern where that is wholly refused.
func (f facts) lacks(p permissions) []string {
	var all []string
	for _, g := range f.grants() {
		refused := slices.DeleteFunc(slices.Clone(g.subjects), p.Publish.allow)
		if len(refused) == len(g.subjects) && len(refused) > 1 {
			refused = []string{g.pattern}
		}
		for _, subject := range refused {
			all = append(all, "Publish to "+subject)
		}
	}
	if inbox := f.inbox + ".x.y"; !p.Subscribe.allow(inbox) {
		all = append(all, "Subscription to "+inbox)
	}
	return all
}

func few(all []string) string {
	const most = 12 // as many as there are patterns to grant
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}

func checkServer(f facts) []finding {
	const name = "versions"
	switch {
	case f.connectErr != nil:
		return nil
	case belowFloor(f.version):
		return verdict(name, warn, "upgrade to 2.12.12, 2.14.3 or later",
			"nats-server %s has known security holes, some around the permissions that keep tenants apart", f.version)
	}
	return verdict(name, fine, "", "nats-server %s, delaybroker %s, nats.go %s", f.version, f.build.name(), orUnknown(f.build.natsGo))
}

// knownAboveFloor is not the opposite of belowFloor: of some versions neither is known.
func knownAboveFloor(version string) bool {
	var major int
	_, err := fmt.Sscanf(version, "%d.", &major)
	return err == nil && !belowFloor(version)
}

func checkJetStream(f facts) []finding {
	const name = "JetStream"
	switch {
	case f.connectErr != nil || errors.Is(f.accountErr, nats.ErrPermissionViolation):
		return nil
	case errors.Is(f.accountErr, jetstream.ErrJetStreamNotEnabled), errors.Is(f.accountErr, jetstream.ErrJetStreamNotEnabledForAccount):
		return verdict(name, critical, "enable JetStream for this account, or set DELAY_JS_DOMAIN to where it is", "%v", f.accountErr)
	case f.accountErr != nil:
		return verdict(name, critical, "look at the servers: without a leader, or with a full disk, JetStream does not answer", "no answer: %v", f.accountErr)
	}
	missing := len(lane.Compare(f.want, f.all).Missing)
	limit := f.account.Limits.MaxStreams
	switch {
	case f.all != nil && limit > 0 && f.account.Streams+missing > limit:
		return verdict(name, critical, "raise the account's limit, or set DELAY_LEVELS=short",
			"the account has %d streams of %d allowed, and %d are missing", f.account.Streams, limit, missing)
	case f.all != nil && f.account.Limits.MaxBytesRequired && missing > 0:
		return verdict(name, warn, "create the streams with max_bytes: see delaybroker streams", "the account demands max_bytes of every stream")
	}
	return verdict(name, fine, "", "%d streams, limit %s", f.account.Streams, limitOf(int64(limit)))
}

func limitOf(n int64) string {
	if n <= 0 {
		return "none"
	}
	return strconv.FormatInt(n, 10)
}

func checkClocks(f facts) []finding {
	const name = "clock"
	if len(f.clocks) == 0 {
		return nil
	}
	worst := slices.MaxFunc(f.clocks, func(a, b clockLook) int {
		return int(a.offset.Abs() - a.within - b.offset.Abs() + b.within)
	})
	const do = "synchronise both by NTP; the broker goes by the server's clock, those who compute a due time by their own"
	var text string
	switch sure := worst.offset.Abs() > worst.within; {
	case !sure:
		text = "the server's is as ours, within " + span(worst.within)
	case worst.offset > 0:
		text = fmt.Sprintf("the server's is %s ahead of ours", span(worst.offset))
	default:
		text = fmt.Sprintf("the server's is %s behind ours", span(-worst.offset))
	}
	if worst.leader != "" {
		text += ", on " + worst.leader
	}
	switch sure := worst.offset.Abs() - worst.within; {
	case sure > clockCritical:
		return verdict(name, critical, do, "%s", text)
	case sure > clockWarn:
		return verdict(name, warn, do, "%s", text)
	}
	return verdict(name, fine, "", "%s", text)
}
