package settings

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/kelseyhightower/envconfig"

	"delaybroker/broker/inspect"
)

// envPrefix begins the names of our own settings.
const envPrefix = "DELAY"

// Defaults that depend on where the program runs. The Dockerfile links in others (see there): as variables of the image
// they could not be told from the user's, which are refused where they contradict each other.
var (
	defaultHTTPAddr       = "127.0.0.1:8422"
	defaultEmbeddedListen = "127.0.0.1:4222"
	defaultEmbeddedDir    = "./delay-data"
)

// defaultSettings has the defaults that are not tags. It is what envconfig fills and describes.
func defaultSettings() settings {
	return settings{HTTPAddr: defaultHTTPAddr, EmbeddedListen: defaultEmbeddedListen, EmbeddedDir: defaultEmbeddedDir}
}

// settings are the environment as it is written, defaults filled in.
//
// They are flat: the name of a variable is that of its field, and their order is that of the table.
//
// All fields are strings because envconfig stops at the first value that it cannot convert, and all problems are to be
// reported at once: see config.
//
// An envconfig tag makes envconfig read the name without our prefix too. That is right for the names that the NATS CLI
// established (DELAY_NATS_URL then wins over NATS_URL), and wrong for ours, which would take HTTP_ADDR from the
// application next to us. None of ours may be called PORT, HOST or SERVICE_*: for a service named "delay", Kubernetes
// sets DELAY_PORT to something else.
type settings struct {
	NATSURL      string `envconfig:"NATS_URL" desc:"NATS servers, comma separated; without it and NATS_CONTEXT a server is embedded"`
	NATSContext  string `envconfig:"NATS_CONTEXT" desc:"context of the NATS CLI, by name or path; the selected one is never used"`
	NATSCreds    string `envconfig:"NATS_CREDS" desc:"credentials file of a user"`
	NATSNKey     string `envconfig:"NATS_NKEY" desc:"file with the seed of an nkey"`
	NATSUser     string `envconfig:"NATS_USER" desc:"user, or a token when there is no password"`
	NATSPassword string `envconfig:"NATS_PASSWORD" desc:"password of the user"`
	NATSToken    string `envconfig:"NATS_TOKEN" desc:"authentication token"`
	NATSCert     string `envconfig:"NATS_CERT" desc:"TLS client certificate file"`
	NATSKey      string `envconfig:"NATS_KEY" desc:"TLS client key file"`
	NATSCA       string `envconfig:"NATS_CA" desc:"TLS authorities file, instead of the system's"`

	ReadContext    string `split_words:"true" desc:"context of the user that reads the lanes, if it is not the one above"`
	WriteContext   string `split_words:"true" desc:"context of the user that writes into the lanes and the dead letters, likewise"`
	DeliverContext string `split_words:"true" desc:"context of the user that publishes to the targets, likewise"`

	Prefix          string `split_words:"true" default:"delay" desc:"root of all subjects and, in upper case, of all stream names"`
	Levels          string `split_words:"true" default:"default" desc:"levels that new messages take: default, rocketmq, short, or names such as 1s,30s,5m,1h"`
	MaxDelay        string `split_words:"true" default:"366d" desc:"longest delay accepted"`
	Attempts        string `split_words:"true" default:"20" desc:"refused deliveries before a message becomes a dead letter; by target as in shop.mail=5,20"`
	Retry           string `split_words:"true" default:"1s,5s,30s" desc:"waits between refused deliveries: after the first, the second, and so on; the last for all others; 1s x2 1m is doubled from 1s to 1m; with ~20% behind them each is longer by up to a fifth, differently for each message; by target as in shop.mail=1s,1m,10m;1s,5s,30s"`
	Deliver         string `split_words:"true" default:"auto" desc:"how targets are reached: auto, stream, core or request; by target as in shop.>=stream,auto"`
	Slack           string `default:"off" desc:"by how much a message may be late so that several are sent together, as in 10ms"`
	ReplyTimeout    string `split_words:"true" default:"5s" desc:"how long a service may take to reply in mode request"`
	Rate            string `split_words:"true" desc:"messages a second for each target, by pattern as in shop.mail=50,reports.*=5; without it no bound"`
	RateByKey       string `split_words:"true" desc:"messages a second for each Delay-Rate-Key, by pattern as in reports.*=5; it holds in place of DELAY_RATE for messages that have a key"`
	MaxPending      string `split_words:"true" default:"none" desc:"messages that each level and the intake may hold"`
	MaxPendingBytes string `split_words:"true" default:"none" desc:"bytes that each level and the intake may hold, as in 10GiB"`
	Journal         string `split_words:"true" default:"off" desc:"how long a record of each delivery is kept, as in 7d, for delaybroker journal and where; or off"`
	JournalBytes    string `split_words:"true" default:"1GiB" desc:"bytes that these records may take: beyond it the oldest go before their time"`
	Timers          string `split_words:"true" default:"auto" desc:"auto creates the stream of named timers if it can; on insists on it; off does not create it. One that is there is served in any case"`
	TimerHistory    string `split_words:"true" default:"1m" desc:"how long the last entry of a timer's subject tells what became of it, or none"`
	ReplyPrefixes   string `split_words:"true" desc:"inbox prefixes that requests about timers are answered on, comma separated, besides _INBOX and _R_"`
	Memory          string `split_words:"true" default:"auto" desc:"bytes that messages may take in memory, all lanes together, as in 64MiB; auto: by the memory limit, or 256MiB without one"`
	Targets         string `split_words:"true" desc:"subjects that may be delivered to, comma separated, with wildcards; without it all"`
	HeaderTargets   string `split_words:"true" desc:"subjects that a Delay-Target header may name, likewise; without it none"`
	Schedules       string `split_words:"true" desc:"subjects on which schedules are asked for as of nats-server itself, with the targets that they may have, as in schedules.orders.>=orders.>; without targets those of DELAY_HEADER_TARGETS"`
	DedupWindow     string `split_words:"true" default:"30s" desc:"how long the streams remember a Nats-Msg-Id"`
	Secret          string `split_words:"true" desc:"what messages between lanes are sealed with, at least 16 bytes; while it is changed several, comma separated; without it a secret in the streams' metadata"`
	StreamReplicas  string `split_words:"true" default:"auto" desc:"copies of new streams: auto (3 in a cluster, otherwise 1) or 1 to 5"`
	Provision       string `split_words:"true" default:"create" desc:"create what is missing, or verify that it is there, for those who make streams by other means"`
	MaxOwners       string `split_words:"true" default:"3" desc:"instances that own lanes; more stand by"`
	Instance        string `split_words:"true" desc:"name of this instance, kept over restarts and no other's: after a crash it resumes at once; without it the host with DELAY_HTTP_ADDR, or DELAY_EMBEDDED_DIR"`
	JSDomain        string `split_words:"true" desc:"JetStream domain, to reach it through a leaf node"`
	InboxPrefix     string `split_words:"true" desc:"root of the subjects that answers come to; _INBOX, or what the context says"`
	HTTPAddr        string `split_words:"true" desc:"address of the page, and of /healthz, /readyz, /status and /metrics, or off"`
	HTTPActions     string `split_words:"true" default:"off" desc:"on lets those with a token change something from the page: cancel, move, fire, resend, remove, pause, resume"`
	HTTPToken       string `split_words:"true" desc:"token of the page, of at least 16 bytes; several, comma separated, with the name that the log gives their owner, as in ann:…,bob:…"`
	HTTPRows        string `split_words:"true" default:"auto" desc:"who may see rows on the page, with ids, keys and targets: open (anyone), token, or auto (anyone on a loopback DELAY_HTTP_ADDR, otherwise those with a token)"`
	HTTPBodies      string `split_words:"true" default:"off" desc:"on lets those who may see rows also see the headers and bodies of messages; the log names who has looked at which"`
	HTTPHosts       string `split_words:"true" desc:"host names that the page is called by, comma separated, besides localhost and addresses"`
	HTTPContext     string `split_words:"true" desc:"context of the user that the page looks and acts as, if it is not the one above"`
	ShutdownGrace   string `split_words:"true" default:"10s" desc:"how long a stop waits for outstanding acknowledgements"`
	LogLevel        string `split_words:"true" default:"info" desc:"debug, info, warn or error"`
	LogFormat       string `split_words:"true" default:"auto" desc:"text, json, or auto: text on a terminal, otherwise json"`

	EmbeddedListen   string `split_words:"true" desc:"address of the embedded server"`
	EmbeddedDir      string `split_words:"true" desc:"data of the embedded server"`
	EmbeddedSync     string `split_words:"true" default:"1s" desc:"how often the embedded server syncs to disk; always for every write"`
	EmbeddedUser     string `split_words:"true" desc:"user of the embedded server, and who the broker is on it; without it and users in DELAY_EMBEDDED_CONFIG it asks nobody"`
	EmbeddedPassword string `split_words:"true" desc:"password of that user"`
	EmbeddedConfig   string `split_words:"true" desc:"configuration file of nats-server for the embedded one: users, accounts, TLS, limits"`
}

// readSettings reads the environment.
func readSettings() (settings, error) {
	if err := unsetEmpty(os.Environ()); err != nil {
		return settings{}, err
	}
	s := defaultSettings()
	if err := envconfig.Process(envPrefix, &s); err != nil {
		return settings{}, fmt.Errorf("read the environment: %w", err)
	}
	return s, nil
}

// unsetEmpty unsets the variables that are empty, as "NATS_CREDS=" in a compose file. To envconfig an empty value is a
// value: it would hide the default, and an empty DELAY_NATS_URL would hide NATS_URL.
func unsetEmpty(environ []string) error {
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		if value == "" && (strings.HasPrefix(name, envPrefix+"_") || strings.HasPrefix(name, "NATS_")) {
			if err := os.Unsetenv(name); err != nil {
				return fmt.Errorf("unset %s: %w", name, err)
			}
		}
	}
	return nil
}

// isSet reports whether the environment, not a default or a context, gives the setting.
func isSet(name string) bool {
	_, ok := os.LookupEnv(name)
	_, prefixed := os.LookupEnv(envPrefix + "_" + name)
	return ok || prefixed
}

// Given says which settings the environment gives, of those that can be read off the streams instead.
func Given() inspect.Given {
	return inspect.Given{Prefix: isSet("DELAY_PREFIX"), Levels: isSet("DELAY_LEVELS"), Retry: isSet("DELAY_RETRY")}
}

// The formats are templates over envconfig's description of a field, which has the plain name of a shared setting in
// Alt and, in Field, what defaultSettings put there.
const (
	tableFormat = "{{range .}}" + nameFormat + "\t{{usage_default .}}{{.Field}}\t{{usage_description .}}\n{{end}}"
	namesFormat = "{{range .}}" + nameFormat + "\n{{end}}"
	nameFormat  = "{{if .Alt}}{{.Alt}}{{else}}{{.Key}}{{end}}"
)

// names are the variables that settings are read from, in the order of the table.
func names() ([]string, error) {
	var b strings.Builder
	if err := envconfig.Usagef(envPrefix, &settings{}, &b, namesFormat); err != nil {
		return nil, fmt.Errorf("list the settings: %w", err)
	}
	return strings.Fields(b.String()), nil
}

// WriteTable prints the table of "serve --help".
func WriteTable(w io.Writer) error {
	s := defaultSettings()
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "usage: delaybroker [serve]\n\nSettings are environment variables. An empty one counts as not set."+
		" Durations are written 1d12h, 30m or 1500ms.\n\nNAME\tDEFAULT\tMEANING\n")
	if err := envconfig.Usagef(envPrefix, &s, table, tableFormat); err != nil {
		return fmt.Errorf("list the settings: %w", err)
	}
	return table.Flush()
}
