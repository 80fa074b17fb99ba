package settings

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/spelling"
)

// injectedName matches the variables that Kubernetes and Docker links set for a service named "delay" or "delay-…".
var injectedName = regexp.MustCompile(
	`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// settingOf maps variables that other programs use, and a frequent typo, to settings of this program.
var settingOf = map[string]string{
	"NATS_URI": "NATS_URL", "NATS_URLS": "NATS_URL", "NATS_SERVER": "NATS_URL", "NATS_SERVERS": "NATS_URL",
	"NATS_SERVER_URL": "NATS_URL", "NATS_HOST": "NATS_URL", "NATS_ADDR": "NATS_URL", "NATS_ADDRESS": "NATS_URL",
	"NATS_ENDPOINT": "NATS_URL", "NATS_ULR": "NATS_URL",
	"NATS_USERNAME": "NATS_USER", "NATS_LOGIN": "NATS_USER",
	"NATS_PASS": "NATS_PASSWORD", "NATS_PWD": "NATS_PASSWORD", "NATS_PASSWD": "NATS_PASSWORD",
	"NATS_AUTH_TOKEN":  "NATS_TOKEN",
	"NATS_CREDENTIALS": "NATS_CREDS", "NATS_CRED": "NATS_CREDS",
	"NATS_CREDS_FILE": "NATS_CREDS", "NATS_CREDS_PATH": "NATS_CREDS",
	"NATS_NKEY_FILE": "NATS_NKEY", "NATS_NKEY_SEED": "NATS_NKEY", "NATS_SEED": "NATS_NKEY",
	"NATS_CTX":      "NATS_CONTEXT",
	"NATS_TLS_CERT": "NATS_CERT", "NATS_CERT_FILE": "NATS_CERT", "NATS_TLSCERT": "NATS_CERT",
	"NATS_TLS_KEY": "NATS_KEY", "NATS_KEY_FILE": "NATS_KEY", "NATS_TLSKEY": "NATS_KEY",
	"NATS_TLSFIRST": "NATS_TLS_FIRST", "NATS_HANDSHAKE_FIRST": "NATS_TLS_FIRST",
	"NATS_TLS_CA": "NATS_CA", "NATS_CA_FILE": "NATS_CA", "NATS_CACERT": "NATS_CA", "NATS_TLSCA": "NATS_CA",
}

// An UnknownName is a variable that is not a setting, although the user may have meant a setting.
type UnknownName struct {
	Name       string
	Suggestion string // the setting that the user probably meant; empty if no setting is similar
}

// unknownNames finds the variables that may be misspelt settings. Such a variable causes a warning and not an error,
// because it may belong to another program. Environ has the form of os.Environ, and known has the names of all
// settings.
func unknownNames(environ, known []string) []UnknownName {
	var unknown []UnknownName
	set := make(map[string]bool)
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		set[name] = value != ""
	}
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		// If the setting itself is set too, the other variable does not stand for it, and there is no warning.
		if meant := settingOf[name]; meant != "" && set[name] && !set[meant] && !set[envPrefix+meant] {
			unknown = append(unknown, UnknownName{name, meant})
			continue
		}
		unprefixed, hasPrefix := strings.CutPrefix(name, envPrefix)
		if !hasPrefix || injectedName.MatchString(name) || slices.Contains(known, name) ||
			slices.Contains(known, unprefixed) {
			continue
		}
		unknown = append(unknown, UnknownName{name, spelling.Nearest(name, known)})
	}
	return unknown
}

// Unknown finds the variables in the environment that may be misspelt settings.
func Unknown() []UnknownName { return unknownNames(os.Environ(), variableNames()) }

// String returns the warning.
func (u UnknownName) String() string {
	if u.Suggestion == "" {
		return fmt.Sprintf("%s is not a setting; serve --help lists the settings", text.Printable(u.Name, 100))
	}
	return fmt.Sprintf("%s is not a setting and is ignored; did you mean %s?", text.Printable(u.Name, 100), u.Suggestion)
}
