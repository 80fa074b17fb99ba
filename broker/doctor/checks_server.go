package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/stats"
	"delaybroker/broker/text"
)

const (
	// ExposedWarning is the warning about an embedded server that other hosts can use without authentication.
	ExposedWarning = "other hosts can use the embedded server without a password"
	// ExposedAdvice is the advice for ExposedWarning.
	ExposedAdvice = "set DELAY_EMBEDDED_USER and DELAY_EMBEDDED_PASSWORD, users in DELAY_EMBEDDED_CONFIG," +
		" or DELAY_EMBEDDED_LISTEN to a loopback address"

	// maxDetail is the maximum length of a text from NATS or a broker in a finding, in characters.
	maxDetail = 300
)

func checkConnection(f Facts) []Finding {
	switch {
	case errors.Is(f.ConnectErr, nats.ErrAuthorization):
		return finding(Critical, cmp.Or(f.Host.LoginSetting, "set NATS_CREDS, NATS_NKEY, or NATS_USER and NATS_PASSWORD"),
			"%v", f.ConnectErr)
	case errors.Is(f.ConnectErr, os.ErrDeadlineExceeded):
		return finding(Critical, "start the server, or set NATS_URL to its address; if it begins connections with TLS "+
			"(handshake_first), set NATS_TLS_FIRST=on; the other checks need a connection", "%v", f.ConnectErr)
	case f.ConnectErr != nil:
		return finding(Critical, "start the server, or set NATS_URL to its address; the other checks need a connection",
			"%v", f.ConnectErr)
	}
	findings := finding(Fine, "", "%s%s", f.server, f.user.suffix())
	if f.Host.ExposedAddress != "" && f.serverName == EmbeddedName {
		findings = append(findings, finding(Warn, ExposedAdvice,
			"%s: the server listens on %s", ExposedWarning, f.Host.ExposedAddress)...)
	}
	for _, l := range f.linkUsers {
		if l.err != nil {
			findings = append(findings, finding(Critical, "check the context "+l.setting, "to %s: %v", l.link, l.err)...)
		} else {
			findings = append(findings, finding(Fine, "", "to %s%s", l.link, l.user.suffix())...)
		}
	}
	return findings
}

// checkReady reports the failed checks of /readyz of the broker on this host. This broker may have other streams than
// doctor reads, so the finding contains the broker's address.
func checkReady(f Facts) []Finding {
	p := f.Host.Probe
	switch stuck := stats.FailingChecks(p.Alive); {
	case p.URL == "":
		return nil
	case p.Err != nil:
		return finding(Skipped, "", "no broker answers at %s: %s",
			p.URL, text.Printable(p.Err.Error(), maxDetail))
	case len(stuck) > 0:
		return finding(Critical, "restart the broker at "+p.URL, "the broker is stuck: %s", strings.Join(stuck, "; "))
	}
	var findings []Finding
	ready := true
	for _, c := range p.Checks {
		if ready = ready && c.OK; c.OK || slices.Contains(embeddedStorage, c.Name) {
			continue
		}
		advice := cmp.Or(text.Printable(c.Remedy, maxDetail), readyAdvice[c.Name], "read the log of that broker")
		findings = append(findings, consequenceOf(finding(Critical, advice,
			"the broker at %s is not ready: %s", p.URL, text.Printable(c.Name+": "+c.Detail, maxDetail)),
			detailedChecks[c.Name]...)...)
	}
	if ready {
		return finding(Fine, "", "%s", p.URL)
	}
	return findings
}

// detailedChecks maps a check of /readyz to the checks of doctor that report the same fault with more detail.
var detailedChecks = map[string][]string{
	"nats": {"connection", "JetStream"}, "lanes": {"JetStream", "streams", "storage", "lanes"},
	"started": {"connection", "JetStream", "streams", "drift", "seal", "lanes"},
}

// readyAdvice has the advice for failed checks of /readyz, by the name of the check.
var readyAdvice = map[string]string{
	"serving": "wait until the broker has stopped",
}

// embeddedStorage lists the checks of /readyz that checkStorage reports.
var embeddedStorage = []string{"disk", "store"}

// detail returns the detail of the named check of the probe if its outcome is ok, or "".
func (p Probe) detail(name string, ok bool) string {
	for _, c := range p.Checks {
		if c.Name == name && c.OK == ok {
			return text.Printable(c.Detail, maxDetail)
		}
	}
	return ""
}

func checkSettings(f Facts) []Finding {
	var findings []Finding
	for _, name := range f.Host.UnknownSettings {
		findings = append(findings, finding(Warn, "correct the name, or remove the variable", "%s", name)...)
	}
	return append(findings, f.checkEqualSettings()...)
}

// checkEqualSettings looks for instances with other settings than the active one, or than the first if none is active.
func (f Facts) checkEqualSettings() []Finding {
	all := f.instances.ProvenAnswers
	if len(all) < 2 {
		return nil
	}
	model := all[max(0, slices.IndexFunc(all, func(a stats.InstanceStatus) bool { return len(a.Lanes) > 0 }))]
	var findings []Finding
	for _, a := range all {
		var names []string
		for name, digest := range a.Settings { // another version may have other settings
			if wanted, ok := model.Settings[name]; ok && wanted != digest {
				names = append(names, text.Printable(name, maxDetail))
			}
		}
		if slices.Sort(names); len(names) > 0 {
			findings = append(findings, finding(Warn, "give all instances the same settings, and restart those that differ",
				"%s differs from %s: %s", text.Printable(a.Instance, maxDetail), text.Printable(model.Instance, maxDetail),
				text.ShortList(names))...)
		}
	}
	return findings
}

func checkServer(f Facts) []Finding {
	if f.ConnectErr != nil {
		return nil
	}
	if weakness := serverWeakness(f.version); weakness != "" {
		return finding(Warn, "upgrade to "+recommendedServers, "nats-server %s %s", f.version, weakness)
	}
	detail := fmt.Sprintf("nats-server %s, delaybroker %s, nats.go %s", f.version, f.Host.Version, f.Host.Client)
	instances, formats, releases := versions(f.instances.ProvenAnswers)
	if len(instances) > 0 {
		detail += "; running: " + text.ShortList(instances)
	}
	if unproven := f.unprovenInstances(); len(unproven) > 0 {
		detail += "; ignored, because their answers have no valid seal: " + text.ShortList(unproven)
	}
	switch {
	case formats > 1:
		return finding(Warn, "finish the upgrade: an older instance cannot read all messages of a newer one",
			"instances with different formats of messages: %s", text.ShortList(instances))
	case releases > 1:
		return finding(Fine, "", "%s; the versions differ, the format is the same", detail)
	}
	return finding(Fine, "", "%s", detail)
}

func (f Facts) unprovenInstances() []string {
	return f.instances.Names(func(a stats.InstanceStatus) bool {
		return !slices.ContainsFunc(f.instances.ProvenAnswers,
			func(p stats.InstanceStatus) bool { return p.Instance == a.Instance })
	})
}

// versions returns the names of the instances with their versions, and the numbers of distinct formats of messages and
// of distinct versions.
func versions(answers []stats.InstanceStatus) (names []string, formats, releases int) {
	allFormats, allVersions := make(map[int]bool), make(map[string]bool)
	for _, a := range answers {
		names = append(names,
			text.Printable(fmt.Sprintf("%s %s (format %d)", a.Instance, a.Version, a.Format), maxDetail))
		allFormats[a.Format], allVersions[a.Version] = true, true
	}
	return names, len(allFormats), len(allVersions)
}

func checkJetStream(f Facts) []Finding {
	switch {
	case f.ConnectErr != nil || errors.Is(f.accountErr, nats.ErrPermissionViolation):
		return nil
	case f.serverName == EmbeddedName && errors.Is(f.accountErr, jetstream.ErrJetStreamNotEnabled):
		return finding(Critical,
			"check the disk of DELAY_EMBEDDED_DIR: if it is full, the embedded server stops JetStream",
			"%v", f.accountErr)
	case errors.Is(f.accountErr, jetstream.ErrJetStreamNotEnabledForAccount):
		return finding(Critical, "enable JetStream for this account", "%v", f.accountErr)
	case errors.Is(f.accountErr, jetstream.ErrJetStreamNotEnabled) && f.apiPrefix != ownAPI:
		return finding(Critical, "set DELAY_JS_DOMAIN to the domain of a JetStream",
			"there is no answer to requests below %s", f.apiPrefix)
	case errors.Is(f.accountErr, jetstream.ErrJetStreamNotEnabled):
		return finding(Critical, "start nats-server with -js (on a leaf node, set DELAY_JS_DOMAIN instead)",
			"%v", f.accountErr)
	case f.accountErr != nil:
		return finding(Critical, "start the missing servers: JetStream has no leader",
			"JetStream does not answer: %v", f.accountErr)
	}
	var unfit []Finding
	for _, n := range f.needs {
		if !n.Fits && !strings.HasPrefix(n.What, "subjects of ") { // see checkForeign
			unfit = append(unfit, finding(Critical, n.Setting, "%s: the broker needs %s, the limit is %s", n.What, n.Need,
				n.Limit)...)
		}
	}
	if unfit != nil {
		return unfit
	}
	limit := "none"
	if n := f.account.Limits.MaxStreams; n > 0 {
		limit = strconv.Itoa(n)
	}
	return finding(Fine, "", "%d streams, limit %s", f.account.Streams, limit)
}
