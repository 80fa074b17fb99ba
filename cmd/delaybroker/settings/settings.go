package settings

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kelseyhightower/envconfig"

	"delaybroker/broker/inspect"
)

// envPrefix is the prefix of the program's own settings.
const envPrefix = "DELAY_"

// Defaults that the linker may replace. The Dockerfile replaces them for a container. It does not set environment
// variables instead: the program would take these for the user's settings, and would refuse NATS_URL beside the
// settings of an embedded server.
var (
	defaultHTTPAddr       = "127.0.0.1:8422"
	defaultEmbeddedListen = "127.0.0.1:4222"
	defaultEmbeddedDir    = "./delay-data"
)

var linkedDefaults = map[string]string{
	"DELAY_HTTP_ADDR": defaultHTTPAddr, "DELAY_EMBEDDED_LISTEN": defaultEmbeddedListen,
	"DELAY_EMBEDDED_DIR": defaultEmbeddedDir,
}

// settings are the environment as text, with the defaults. Each field is a row of the table of "serve --help". Its tags
// are the complete description of the variable:
//
//	envconfig  its name
//	default    its value if it is not set or empty
//	desc       its meaning
//	field      the fields of broker.Config that it sets; a problem with a field is reported with the variable
//	word       a word that is allowed in addition to the broker's values of the field
//	secret     the value must not be shown
//	link       the link whose context it names
//
// All fields are strings, so that the method config reports all unparsable values together.
//
// The program also reads a name of the NATS CLI with the prefix DELAY_: DELAY_NATS_URL takes precedence over NATS_URL.
// No setting may be named PORT, HOST or SERVICE_*: for a service named "delay", Kubernetes sets DELAY_PORT to another
// value.
type settings struct {
	NATSURL      string `envconfig:"NATS_URL" desc:"NATS servers, comma separated; without it and NATS_CONTEXT a server is embedded"`
	NATSContext  string `envconfig:"NATS_CONTEXT" desc:"context of the NATS CLI, by name or path; the context selected in the CLI is ignored"`
	NATSCreds    string `envconfig:"NATS_CREDS" desc:"credentials file of a user"`
	NATSNKey     string `envconfig:"NATS_NKEY" desc:"file with the seed of an nkey"`
	NATSUser     string `envconfig:"NATS_USER" desc:"user, or a token if there is no password"`
	NATSPassword string `envconfig:"NATS_PASSWORD" secret:"true" desc:"password of the user"`
	NATSToken    string `envconfig:"NATS_TOKEN" secret:"true" desc:"authentication token"`
	NATSCert     string `envconfig:"NATS_CERT" desc:"TLS client certificate file"`
	NATSKey      string `envconfig:"NATS_KEY" desc:"TLS client key file"`
	NATSCA       string `envconfig:"NATS_CA" desc:"TLS authorities file, instead of the system's"`

	ReadContext    string `envconfig:"DELAY_READ_CONTEXT" link:"read" desc:"context of the user that reads the lanes; by default NATS_CONTEXT"`
	WriteContext   string `envconfig:"DELAY_WRITE_CONTEXT" link:"write" desc:"context of the user that writes into the lanes and the dead letters; by default NATS_CONTEXT"`
	DeliverContext string `envconfig:"DELAY_DELIVER_CONTEXT" link:"deliver" desc:"context of the user that publishes to the targets; by default NATS_CONTEXT"`

	Prefix          string `envconfig:"DELAY_PREFIX" default:"delay" field:"Prefix" desc:"root of all subjects and, in upper case, of all stream names"`
	Levels          string `envconfig:"DELAY_LEVELS" default:"default" desc:"levels that new messages take: default, rocketmq, short, or names such as 1s,30s,5m,1h"`
	MaxDelay        string `envconfig:"DELAY_MAX_DELAY" default:"366d" field:"MaxDelay" desc:"maximum delay of a message"`
	Attempts        string `envconfig:"DELAY_ATTEMPTS" default:"20" field:"Attempts AttemptRules" desc:"number of refusals after which a message becomes a dead letter; by target as in shop.mail=5,20"`
	Retry           string `envconfig:"DELAY_RETRY" default:"1s,5s,30s" field:"RetryRules RetryJitter" desc:"waits after the first refusal, the second, and so on, the last for all others; 1s x2 1m doubles from 1s to 1m; ~20% after the waits extends each by a random part of up to 20%; by target as in shop.mail=1s,1m,10m;1s,5s,30s"`
	Deliver         string `envconfig:"DELAY_DELIVER" default:"auto" field:"Deliver" desc:"delivery mode: auto, stream, core or request; by target as in shop.>=stream,auto"`
	Slack           string `envconfig:"DELAY_SLACK" default:"off" field:"Slack" word:"off" desc:"maximum delay of a due message, so that several are sent together, such as 10ms"`
	ReplyTimeout    string `envconfig:"DELAY_REPLY_TIMEOUT" default:"5s" field:"ReplyTimeout" desc:"timeout of a service's reply in mode request"`
	Rate            string `envconfig:"DELAY_RATE" field:"Rates" desc:"messages a second for each target, by pattern as in shop.mail=50,reports.*=5; by default no bound"`
	RateByKey       string `envconfig:"DELAY_RATE_BY_KEY" field:"RatesByKey" desc:"messages a second for each Delay-Rate-Key, by pattern as in reports.*=5; replaces DELAY_RATE for messages with a key"`
	MaxPending      string `envconfig:"DELAY_MAX_PENDING" default:"none" field:"MaxPending" desc:"maximum number of messages in each level and in the intake"`
	MaxPendingBytes string `envconfig:"DELAY_MAX_PENDING_BYTES" default:"none" field:"MaxPendingBytes" desc:"maximum number of bytes in each level and in the intake, such as 10GiB"`
	Journal         string `envconfig:"DELAY_JOURNAL" default:"off" field:"Journal" word:"off" desc:"retention time of the records of deliveries, such as 7d, for delaybroker journal and where; or off"`
	JournalBytes    string `envconfig:"DELAY_JOURNAL_BYTES" default:"1GiB" field:"JournalBytes" desc:"maximum bytes of the records of DELAY_JOURNAL; above it, the oldest are removed early"`
	Timers          string `envconfig:"DELAY_TIMERS" default:"auto" field:"Timers" desc:"auto creates the stream of named timers if possible; on requires it; off does not create it. An existing stream is always served"`
	TimerHistory    string `envconfig:"DELAY_TIMER_HISTORY" default:"1m" field:"TimerHistory" word:"none" desc:"retention time of an ended timer's state, or none"`
	ReplyPrefixes   string `envconfig:"DELAY_REPLY_PREFIXES" field:"ReplyPrefixes" desc:"inbox prefixes, comma separated, for replies to requests about timers, in addition to _INBOX and _R_"`
	Memory          string `envconfig:"DELAY_MEMORY" default:"auto" field:"HoldBytes" desc:"maximum bytes of messages in memory, all lanes together, such as 64MiB; auto derives it from the memory limit, or means 256MiB without one"`
	Targets         string `envconfig:"DELAY_TARGETS" field:"Targets" desc:"allowed target subjects, comma separated, with wildcards; by default all"`
	HeaderTargets   string `envconfig:"DELAY_HEADER_TARGETS" field:"HeaderTargets" desc:"allowed subjects in a Delay-Target header, comma separated, with wildcards; by default none"`
	Schedules       string `envconfig:"DELAY_SCHEDULES" field:"Schedules" desc:"subjects for schedules in nats-server's format, with their allowed targets, as in schedules.orders.>=orders.>; without targets, those of DELAY_HEADER_TARGETS"`
	DedupWindow     string `envconfig:"DELAY_DEDUP_WINDOW" default:"30s" field:"DedupWindow" desc:"duplicate window of the streams, for a Nats-Msg-Id"`
	Secret          string `envconfig:"DELAY_SECRET" field:"Secrets" secret:"true" desc:"secret that seals messages between lanes, at least 16 bytes; several during a rotation, comma separated; by default a secret in the streams' metadata"`
	StreamReplicas  string `envconfig:"DELAY_STREAM_REPLICAS" default:"auto" field:"Replicas" word:"auto" desc:"replicas of new streams: auto (3 in a cluster, otherwise 1) or 1 to 5"`
	Provision       string `envconfig:"DELAY_PROVISION" default:"create" desc:"create creates missing streams; verify only checks that they exist"`
	MaxOwners       string `envconfig:"DELAY_MAX_OWNERS" default:"3" field:"MaxOwners" desc:"maximum number of instances that own lanes; further ones stand by"`
	Instance        string `envconfig:"DELAY_INSTANCE" field:"Instance" desc:"unique name of this instance, the same after a restart: after a crash the instance resumes immediately; by default derived from the host with DELAY_HTTP_ADDR, or from DELAY_EMBEDDED_DIR"`
	JSDomain        string `envconfig:"DELAY_JS_DOMAIN" field:"JSDomain" desc:"JetStream domain, for a JetStream behind a leaf node"`
	InboxPrefix     string `envconfig:"DELAY_INBOX_PREFIX" desc:"inbox prefix of the broker's own requests; by default _INBOX, or the context's"`
	HTTPAddr        string `envconfig:"DELAY_HTTP_ADDR" desc:"off, or the address of the page and of /healthz, /readyz, /status and /metrics"`
	HTTPActions     string `envconfig:"DELAY_HTTP_ACTIONS" default:"off" desc:"on allows viewers with a token to act on the page: cancel, move, fire, resend, remove, pause, resume"`
	HTTPToken       string `envconfig:"DELAY_HTTP_TOKEN" secret:"true" desc:"token of the page, of at least 16 bytes; several are comma separated, with names for the log, as in ann:…,bob:…"`
	HTTPRows        string `envconfig:"DELAY_HTTP_ROWS" default:"auto" desc:"who may see rows on the page, with ids, keys and targets: open (anyone), token, or auto (anyone if DELAY_HTTP_ADDR is a loopback address, otherwise viewers with a token)"`
	HTTPBodies      string `envconfig:"DELAY_HTTP_BODIES" default:"off" desc:"on allows viewers of rows to see headers and bodies of messages; the log has the viewer of each"`
	HTTPHosts       string `envconfig:"DELAY_HTTP_HOSTS" desc:"host names of the page, comma separated, in addition to localhost and addresses"`
	HTTPContext     string `envconfig:"DELAY_HTTP_CONTEXT" link:"page" desc:"context of the page's user; by default NATS_CONTEXT"`
	ShutdownGrace   string `envconfig:"DELAY_SHUTDOWN_GRACE" default:"10s" field:"ShutdownGrace" desc:"maximum time of a clean stop, of which three quarters are for outstanding acknowledgements"`
	LogLevel        string `envconfig:"DELAY_LOG_LEVEL" default:"info" desc:"debug, info, warn or error"`
	LogFormat       string `envconfig:"DELAY_LOG_FORMAT" default:"auto" desc:"text, json, or auto: text on a terminal, otherwise json"`

	EmbeddedListen   string `envconfig:"DELAY_EMBEDDED_LISTEN" desc:"address of the embedded server"`
	EmbeddedDir      string `envconfig:"DELAY_EMBEDDED_DIR" desc:"data directory of the embedded server"`
	EmbeddedSync     string `envconfig:"DELAY_EMBEDDED_SYNC" default:"1s" desc:"fsync interval of the embedded server; always means every write"`
	EmbeddedUser     string `envconfig:"DELAY_EMBEDDED_USER" desc:"user of the embedded server, also for the broker; if it is not set, and DELAY_EMBEDDED_CONFIG has no users, clients need no user"`
	EmbeddedPassword string `envconfig:"DELAY_EMBEDDED_PASSWORD" secret:"true" desc:"password of DELAY_EMBEDDED_USER"`
	EmbeddedConfig   string `envconfig:"DELAY_EMBEDDED_CONFIG" desc:"configuration file of nats-server for the embedded one: users, accounts, TLS, limits"`
}

// A variable is a field of settings: its tags, and its value.
type variable struct {
	reflect.StructTag
	value *string
}

func (v variable) name() string { return v.Get("envconfig") }

func (v variable) defaultValue() string { return cmp.Or(v.Get("default"), linkedDefaults[v.name()]) }

// variables returns all variables, in the order of the table.
func (s *settings) variables() []variable {
	fields := reflect.ValueOf(s).Elem()
	variables := make([]variable, fields.NumField())
	for i := range variables {
		variables[i] = variable{fields.Type().Field(i).Tag, fields.Field(i).Addr().Interface().(*string)}
	}
	return variables
}

// byField returns the variables by the fields of broker.Config that they set.
func (s *settings) byField() map[string]variable {
	variables := make(map[string]variable)
	for _, v := range s.variables() {
		for field := range strings.FieldsSeq(v.Get("field")) {
			variables[field] = v
		}
	}
	return variables
}

// contexts returns the variables for the contexts of links.
func (s *settings) contexts() []variable {
	return slices.DeleteFunc(s.variables(), func(v variable) bool { return v.Get("link") == "" })
}

// readSettings reads the environment. An empty variable, such as "NATS_CREDS=" in a compose file, counts as unset.
func readSettings() (s settings) {
	if err := envconfig.Process("", &s); err != nil {
		panic(fmt.Sprintf("bug: settings are strings: %s", err)) // fails only for a value that cannot be converted
	}
	for _, v := range s.variables() {
		if !strings.HasPrefix(v.name(), envPrefix) {
			*v.value = cmp.Or(os.Getenv(envPrefix+v.name()), *v.value)
		}
		*v.value = cmp.Or(*v.value, v.defaultValue()) // envconfig applies a default only to an unset variable
	}
	return s
}

// isSet reports whether the environment has the setting. A default or a context does not count.
func isSet(name string) bool {
	return os.Getenv(name) != "" || !strings.HasPrefix(name, envPrefix) && os.Getenv(envPrefix+name) != ""
}

// Overrides reports, for each setting that a command can adopt from the streams, whether the environment has it.
func Overrides() inspect.Overrides {
	return inspect.Overrides{Prefix: isSet("DELAY_PREFIX"), Levels: isSet("DELAY_LEVELS"), Retry: isSet("DELAY_RETRY")}
}

// variableNames returns the names of the variables, in the order of the table.
func variableNames() (names []string) {
	for _, v := range new(settings).variables() {
		names = append(names, v.name())
	}
	return names
}

// WriteTable prints the table of "serve --help".
func WriteTable(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "usage: delaybroker [serve]\n\nSettings are environment variables. An empty one counts as not set."+
		" Durations are written 1d12h, 30m or 1500ms.\n\nNAME\tDEFAULT\tMEANING\n")
	for _, v := range new(settings).variables() {
		fmt.Fprintf(table, "%s\t%s\t%s\n", v.name(), v.defaultValue(), v.Get("desc"))
	}
	return table.Flush()
}
