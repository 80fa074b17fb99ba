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

	"delaybroker/broker/layout"
)

const (
	clockWarn, clockCritical = time.Second, 10 * time.Second
	storeWarn                = 0.8 // of a limit; fullAt is critical
	lateWarn                 = 10 * time.Second
)

// checks are pure functions of the facts. One that has nothing to go by says nothing: another says why.
var checks = []func(facts) []finding{
	checkConnection, checkReady, checkRights, checkServer, checkJetStream, checkStreams, checkDrift, checkSeal, checkStorage, checkReaders,
	checkClocks, checkDurability, checkDeadLetters, checkMemory,
}

// checkNames are what findings are filed under.
var checkNames = []string{
	"connection", "ready", "rights", "versions", "JetStream", "streams", "drift", "seal", "storage", "lanes", "clock", "durability", "dead letters", "memory",
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
	}
	all := verdict(name, fine, "", "%s%s", f.server, f.user.suffix())
	for _, l := range f.apart {
		if l.err != nil {
			all = append(all, verdict(name, critical, "look at the context "+l.variable, "to %s: %v", l.link, l.err)...)
		} else {
			all = append(all, verdict(name, fine, "", "to %s%s", l.link, l.user.suffix())...)
		}
	}
	return all
}

// checkReady passes on what a broker on this host says of itself. It may be another broker than the one whose streams
// these are, so its address is said.
func checkReady(f facts) []finding {
	const name = "ready"
	switch bad := f.ready.answer.failing(); {
	case f.ready.url == "":
		return nil
	case f.ready.err != nil:
		return verdict(name, fine, "", "no broker answers at %s, on this host: %s", f.ready.url, printable(f.ready.err.Error(), 300))
	case len(bad) > 0:
		return verdict(name, critical, "mend what it names; a restart does not help while /healthz is ok", "the broker at %s is not: %s", f.ready.url, strings.Join(bad, "; "))
	}
	return verdict(name, fine, "", "%s", f.ready.url)
}

// suffix is who a user is, if that is known.
func (u *userInfo) suffix() string {
	if u == nil || u.User == "" {
		return ""
	}
	return fmt.Sprintf(" as %s in account %s", u.User, u.Account)
}

func few(all []string) string {
	const most = 14 // as many as there are patterns to grant
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
	case f.serverName == embeddedName && errors.Is(f.accountErr, jetstream.ErrJetStreamNotEnabled):
		return verdict(name, critical, "look at the disk of DELAY_EMBEDDED_DIR: the embedded server stops JetStream when it is full", "%v", f.accountErr)
	case errors.Is(f.accountErr, jetstream.ErrJetStreamNotEnabled), errors.Is(f.accountErr, jetstream.ErrJetStreamNotEnabledForAccount):
		return verdict(name, critical, "start nats-server with -js, or enable JetStream for this account, or set DELAY_JS_DOMAIN to where it is", "%v", f.accountErr)
	case f.accountErr != nil:
		return verdict(name, critical, "look at the servers: without a leader, or with a full disk, JetStream does not answer", "no answer: %v", f.accountErr)
	}
	missing := len(layout.Compare(f.want, f.all).Missing)
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
