package embedded

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats-server/v2/conf"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// The reasons why a file of DELAY_EMBEDDED_CONFIG must not have a key.
const (
	setByListen  = "DELAY_EMBEDDED_LISTEN sets the address"
	setByDir     = "DELAY_EMBEDDED_DIR sets the data directory"
	setBySync    = "DELAY_EMBEDDED_SYNC sets the fsync interval"
	setByLog     = "the server writes into the broker's log: see DELAY_LOG_LEVEL"
	singleServer = "the embedded server is a single one; run your own nats-server for that, and set NATS_URL"
)

// forbiddenKeys has the reason for each key and each section that a file must not contain.
var forbiddenKeys = map[string]string{
	"listen": setByListen, "host": setByListen, "net": setByListen, "port": setByListen,
	"store_dir": setByDir, "storedir": setByDir,
	"server_name":     "the name is fixed, so that the other commands recognize the server",
	"jetstream.store": setByDir, "jetstream.store_dir": setByDir, "jetstream.storedir": setByDir,
	"jetstream.sync": setBySync, "jetstream.sync_interval": setBySync,
	"jetstream.domain": "the embedded server has no domain",
	"cluster":          singleServer, "gateway": singleServer, "leaf": singleServer, "leafnodes": singleServer,
	"logfile": setByLog, "log_file": setByLog, "syslog": setByLog, "remote_syslog": setByLog,
	"debug": setByLog, "trace": setByLog,
}

// unsetVariable matches nats-server's error about an unset variable. The error is not shown, since the name may be an
// unquoted password.
var unsetVariable = regexp.MustCompile(`variable reference for '.*' on line (\d+).*`)

// A File describes a configuration file.
type File struct {
	RequiresTLS         bool // the file configures TLS for clients
	RequiresCertificate bool // clients need a certificate
	HasUsers            bool // the file defines users
	RequiresUser        bool // clients need a user of the file
	LimitsStore         bool // the file limits the storage

	// openTo are the addresses for WebSocket and MQTT that other hosts can reach, each with true if clients never need a
	// user there, and with false if they need the same user as at the server's address.
	openTo map[string]bool

	// Options are the TLS options of a client, empty if the file does not configure TLS. With them, the client accepts
	// the certificate in the file and no other. It ignores the authority and the host name in the certificate.
	Options []nats.Option
}

// ReadFile reads a file, and returns its problems. A problem contains no secret value.
func ReadFile(path string) (f File, problems []string) {
	keys, err := conf.ParseFile(path)
	if err != nil {
		return f, []string{unsetVariable.ReplaceAllString(oneLine(err), "the variable on line $1 is not set"+
			" (a password that begins with a dollar sign needs quotes)")}
	}
	for _, key := range slices.Sorted(maps.Keys(collectKeys(keys, ""))) {
		if why := forbiddenKeys[key]; why != "" {
			problems = append(problems, fmt.Sprintf("%s is set: %s", key, why))
		}
	}
	if disablesJetStream(keys) {
		problems = append(problems, "jetstream is disabled, but the broker needs it")
	}
	o, err := server.ProcessConfigFile(path)
	if err != nil {
		return f, append(problems, oneLine(err))
	}
	f.HasUsers, f.LimitsStore = hasUsers(o), o.JetStreamMaxStore > 0
	f.RequiresUser = f.HasUsers && o.NoAuthUser == ""
	f.openTo = openListeners(o)
	if o.TLSConfig == nil {
		return f, problems
	}
	f.RequiresTLS, f.RequiresCertificate = true, o.TLSConfig.ClientAuth == tls.RequireAndVerifyClientCert
	f.Options = []nats.Option{nats.Secure(trustOnly(func() []tls.Certificate { return o.TLSConfig.Certificates }))}
	if o.TLSHandshakeFirst {
		f.Options = append(f.Options, nats.TLSHandshakeFirst())
	}
	return f, problems
}

// openListeners returns the value of File.openTo.
func openListeners(o *server.Options) map[string]bool {
	open := make(map[string]bool)
	add := func(host string, port int, tlsConfig *tls.Config, user, token, anyone string) {
		verifies := tlsConfig != nil && tlsConfig.ClientAuth == tls.RequireAndVerifyClientCert
		if port != 0 && !IsLoopback(host) && !verifies && user == "" && token == "" {
			open[net.JoinHostPort(host, strconv.Itoa(port))] = anyone != ""
		}
	}
	w, m := o.Websocket, o.MQTT
	add(w.Host, w.Port, w.TLSConfig, w.Username, w.Token, w.NoAuthUser)
	add(m.Host, m.Port, m.TLSConfig, m.Username, m.Token, m.NoAuthUser)
	return open
}

// OpenListener returns an address for WebSocket or MQTT at which clients on other hosts need no user, or "". HasUser is
// true if the settings have a user.
func (f File) OpenListener(hasUser bool) string {
	for _, address := range slices.Sorted(maps.Keys(f.openTo)) {
		if f.openTo[address] || !f.RequiresUser && (f.HasUsers || !hasUser) {
			return address
		}
	}
	return ""
}

// readFile reads the configuration file, if there is one. The error has all problems of the file.
func (c Config) readFile() (File, error) {
	if c.File == "" {
		return File{}, nil
	}
	f, problems := ReadFile(c.File)
	if len(problems) > 0 {
		return f, fmt.Errorf("DELAY_EMBEDDED_CONFIG %s: %s", c.File, strings.Join(problems, "; "))
	}
	return f, nil
}

// sameForClients reports whether two files require the same of clients, except for the names of users.
func (f File) sameForClients(other File) bool {
	return f.RequiresTLS == other.RequiresTLS && f.RequiresCertificate == other.RequiresCertificate &&
		f.HasUsers == other.HasUsers && f.RequiresUser == other.RequiresUser && maps.Equal(f.openTo, other.openTo)
}

// collectKeys returns the keys of a file and of its sections, in lower case, since nats-server ignores their case. A
// key of a section has the form "section.key". The keys of a section in a section are left out.
func collectKeys(section map[string]any, prefix string) map[string]bool {
	names := make(map[string]bool)
	for key, value := range section {
		key = prefix + strings.ToLower(key)
		names[key] = true
		if inner, ok := value.(map[string]any); ok && prefix == "" {
			maps.Copy(names, collectKeys(inner, key+"."))
		}
	}
	return names
}

// disablesJetStream reports whether the file disables JetStream, in one of nats-server's ways.
func disablesJetStream(keys map[string]any) bool {
	disabled := regexp.MustCompile(`^(?i:false|disabled?)$`)
	for key, value := range keys {
		if !strings.EqualFold(key, "jetstream") {
			continue
		}
		if section, ok := value.(map[string]any); ok {
			value = true
			for k, v := range section {
				if strings.EqualFold(k, "enable") || strings.EqualFold(k, "enabled") {
					value = v
				}
			}
		}
		return disabled.MatchString(fmt.Sprint(value))
	}
	return false
}

// oneLine joins the lines of an error of nats-server.
func oneLine(err error) string { return strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ") }

// trustOnly returns a TLS configuration for clients that accepts only these certificates.
func trustOnly(certificates func() []tls.Certificate) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // VerifyConnection checks the certificate
		VerifyConnection: func(state tls.ConnectionState) error {
			for _, c := range certificates() {
				if bytes.Equal(c.Certificate[0], state.PeerCertificates[0].Raw) {
					return nil
				}
			}
			return errors.New("the certificate is not the embedded server's: if the file of DELAY_EMBEDDED_CONFIG has a new" +
				" certificate, restart the broker, which reads the file at its start")
		},
	}
}

// hasUsers reports whether options define users, in one of nats-server's ways.
func hasUsers(o *server.Options) bool {
	return o.Username != "" || o.Authorization != "" || len(o.Users) > 0 || len(o.Nkeys) > 0 ||
		len(o.TrustedKeys) > 0 || len(o.TrustedOperators) > 0 || o.AuthCallout != nil
}
