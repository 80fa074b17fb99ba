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

// Defaults that the linker may replace, as in the Dockerfile. The Dockerfile sets no environment variables instead: the
// program would take them for the user's settings, and would refuse NATS_URL together with settings of an embedded
// server.
var (
	defaultHTTPAddr       = "127.0.0.1:8422"
	defaultEmbeddedListen = "127.0.0.1:4222"
	defaultEmbeddedDir    = "./delay-data"
)

var linkedDefaults = map[string]string{
	"DELAY_HTTP_ADDR": defaultHTTPAddr, "DELAY_EMBEDDED_LISTEN": defaultEmbeddedListen,
	"DELAY_EMBEDDED_DIR": defaultEmbeddedDir,
}

// settings are the environment as text, with the defaults. Each field is a row of the table of "serve --help". The tags
// of a field describe its variable:
//
//	envconfig  its name
//	default    its value if it is not set or empty
//	desc       its meaning
//	field      the fields of broker.Config that it sets; a problem with a field is reported with the variable
//	word       a word that is allowed in addition to the values that the broker allows for the field
//	secret     the value must not be shown
//	link       the name of the link that uses the context in the variable
//
// All fields are strings, so that the method config reports all unparsable values together.
//
// The program also reads each variable of the NATS CLI with the prefix DELAY_: DELAY_NATS_URL takes precedence over
// NATS_URL. No setting may be named DELAY_PORT, DELAY_HOST or DELAY_SERVICE_*, since Kubernetes sets these variables
// for a service named "delay".
type settings struct {
	NATSURL      string `envconfig:"NATS_URL" desc:"NATS servers, comma separated; if neither NATS_URL nor NATS_CONTEXT is set, the broker embeds a server"`
	NATSContext  string `envconfig:"NATS_CONTEXT" desc:"context of the NATS CLI, by name or path; the context selected in the CLI is ignored"`
	NATSCreds    string `envconfig:"NATS_CREDS" desc:"credentials file of a user"`
	NATSNKey     string `envconfig:"NATS_NKEY" desc:"file with the seed of an nkey"`
	NATSUser     string `envconfig:"NATS_USER" desc:"user name; without NATS_PASSWORD, an authentication token"`
	NATSPassword string `envconfig:"NATS_PASSWORD" secret:"true" desc:"password of the user"`
	NATSToken    string `envconfig:"NATS_TOKEN" secret:"true" desc:"authentication token"`
	NATSCert     string `envconfig:"NATS_CERT" desc:"TLS client certificate file"`
	NATSKey      string `envconfig:"NATS_KEY" desc:"TLS client key file"`
	NATSCA       string `envconfig:"NATS_CA" desc:"file of the certificate authorities that TLS trusts, instead of the system's"`
	NATSTLSFirst string `envconfig:"NATS_TLS_FIRST" default:"off" desc:"on begins each connection with TLS, for servers with handshake_first"`

	ReadContext    string `envconfig:"DELAY_READ_CONTEXT" link:"read" desc:"context of the user that reads the lanes; by default the user of the NATS_* variables"`
	WriteContext   string `envconfig:"DELAY_WRITE_CONTEXT" link:"write" desc:"context of the user that writes into the lanes and the dead letters; by default the user of the NATS_* variables"`
	DeliverContext string `envconfig:"DELAY_DELIVER_CONTEXT" link:"deliver" desc:"context of the user that publishes to the targets; by default the user of the NATS_* variables"`

	Prefix          string `envconfig:"DELAY_PREFIX" default:"delay" field:"Prefix" desc:"prefix of the broker's subjects and, in upper case, of its stream names"`
	Levels          string `envconfig:"DELAY_LEVELS" default:"default" desc:"levels for new messages: default, rocketmq, short, or a list such as 1s,30s,5m,1h; each level has a stream"`
	MaxDelay        string `envconfig:"DELAY_MAX_DELAY" default:"366d" field:"MaxDelay" desc:"maximum delay of a message, and maximum interval of Delay-Every"`
	Attempts        string `envconfig:"DELAY_ATTEMPTS" default:"20" field:"Attempts AttemptRules" desc:"number of refusals after which a message becomes a dead letter; shop.mail=5,20 means 5 for the target shop.mail, and 20 for all others"`
	Retry           string `envconfig:"DELAY_RETRY" default:"1s,5s,30s" field:"RetryRules RetryJitter" desc:"waits before the next attempts: 1s after the first refusal, 5s after the second, 30s after each further one; 1s x2 1m doubles the wait from 1s to 1m; ~20% at the end extends each wait by a random part of up to 20%; shop.mail=1s,1m,10m;1s,5s,30s has other waits for the target shop.mail"`
	Deliver         string `envconfig:"DELAY_DELIVER" default:"auto" field:"Deliver" desc:"delivery mode: stream, core, request, or auto (a stream if one listens on the target, otherwise core); shop.>=stream,auto means stream for the targets shop.>, and auto for all others"`
	Slack           string `envconfig:"DELAY_SLACK" default:"off" field:"Slack" word:"off" desc:"interval such as 10ms, or off; messages that are due within one interval are sent together at its end, which takes less CPU"`
	ReplyTimeout    string `envconfig:"DELAY_REPLY_TIMEOUT" default:"5s" field:"ReplyTimeout" desc:"maximum wait for a service's reply in delivery mode request"`
	Rate            string `envconfig:"DELAY_RATE" field:"Rates" desc:"maximum number of messages a second to each target of a pattern, as in shop.mail=50,reports.*=5; other targets have no maximum"`
	RateByKey       string `envconfig:"DELAY_RATE_BY_KEY" field:"RatesByKey" desc:"maximum number of messages a second with one value of Delay-Rate-Key, to all targets of a pattern together, as in reports.*=5; replaces DELAY_RATE for these messages"`
	InProgress      string `envconfig:"DELAY_IN_PROGRESS" field:"InProgress" desc:"maximum number of deliveries in progress to each target of a pattern, as in svc.pdf=5,reports.*=1: a delivery is in progress until the service replies or the stream acknowledges; not for delivery mode core"`
	InProgressByKey string `envconfig:"DELAY_IN_PROGRESS_BY_KEY" field:"InProgressByKey" desc:"maximum number of deliveries in progress with one value of Delay-Rate-Key, to all targets of a pattern together, as in reports.*=1; replaces DELAY_IN_PROGRESS for these messages"`
	MaxPending      string `envconfig:"DELAY_MAX_PENDING" default:"none" field:"MaxPending" desc:"maximum number of messages in each level, and in the intake; a full stream refuses publishes"`
	MaxPendingBytes string `envconfig:"DELAY_MAX_PENDING_BYTES" default:"none" field:"MaxPendingBytes" desc:"maximum number of bytes in each level, and in the intake, such as 10GiB; a full stream refuses publishes"`
	Storage         string `envconfig:"DELAY_STORAGE" default:"none" field:"Storage" desc:"maximum number of bytes of all streams of the broker together, in one copy, such as 1GiB; each stream reserves a part, as an account with required max_bytes demands; excludes DELAY_MAX_PENDING_BYTES, replaces DELAY_JOURNAL_BYTES"`
	Journal         string `envconfig:"DELAY_JOURNAL" default:"off" field:"Journal" word:"off" desc:"time for which records of deliveries are kept, such as 7d, for delaybroker journal and where; or off"`
	JournalBytes    string `envconfig:"DELAY_JOURNAL_BYTES" default:"1GiB" field:"JournalBytes" desc:"maximum size of the records of DELAY_JOURNAL; above it, the oldest are removed early"`
	Timers          string `envconfig:"DELAY_TIMERS" default:"auto" field:"Timers" desc:"auto: the broker creates the stream of named timers, and starts without the stream if that fails; on: the broker does not start without the stream; off: the broker does not create it. An existing stream is always served"`
	TimerHistory    string `envconfig:"DELAY_TIMER_HISTORY" default:"1m" field:"TimerHistory" word:"none" desc:"time for which the state of an ended timer is kept; none keeps no state"`
	ReplyPrefixes   string `envconfig:"DELAY_REPLY_PREFIXES" field:"ReplyPrefixes" desc:"prefixes of reply subjects, comma separated, that requests about timers may have in addition to _INBOX and _R_"`
	Memory          string `envconfig:"DELAY_MEMORY" default:"auto" field:"HoldBytes" desc:"maximum size of the messages in the broker's memory, such as 64MiB; auto derives it from the memory limit of the process; without a limit, auto is 256MiB, or 128MiB with an embedded server"`
	Targets         string `envconfig:"DELAY_TARGETS" field:"Targets" desc:"allowed target subjects, comma separated, with wildcards; by default all"`
	HeaderTargets   string `envconfig:"DELAY_HEADER_TARGETS" field:"HeaderTargets" desc:"subjects that a request may name in its Delay-Target header, comma separated, with wildcards; by default none"`
	Schedules       string `envconfig:"DELAY_SCHEDULES" field:"Schedules" desc:"subjects on which the broker takes schedules in nats-server's format, each with its allowed targets, as in schedules.orders.>=orders.>; without targets, those of DELAY_HEADER_TARGETS"`
	DedupWindow     string `envconfig:"DELAY_DEDUP_WINDOW" default:"30s" field:"DedupWindow" desc:"time within which the broker's streams store only one message with the same Nats-Msg-Id"`
	Secret          string `envconfig:"DELAY_SECRET" field:"Secrets" secret:"true" desc:"secret of the seals, which prove that a broker wrote a message; at least 16 bytes; several during a rotation, comma separated; by default a secret in the streams' metadata"`
	StreamReplicas  string `envconfig:"DELAY_STREAM_REPLICAS" default:"auto" field:"Replicas" word:"auto" desc:"copies of each new stream: 1 to 5, or auto (3 in a cluster, otherwise 1)"`
	Provision       string `envconfig:"DELAY_PROVISION" default:"create" desc:"create creates missing streams, and changes the subjects and bounds of existing ones; verify only checks that the streams exist"`
	Instance        string `envconfig:"DELAY_INSTANCE" field:"Instance" desc:"unique name of this instance, the same after each restart, with which it resumes immediately after a crash; by default made from the host name and DELAY_HTTP_ADDR, or DELAY_EMBEDDED_DIR if the broker embeds a server"`
	JSDomain        string `envconfig:"DELAY_JS_DOMAIN" field:"JSDomain" desc:"JetStream domain, if JetStream is behind a leaf node"`
	InboxPrefix     string `envconfig:"DELAY_INBOX_PREFIX" desc:"prefix of the subjects on which the broker receives answers; by default the context's, or _INBOX"`
	HTTPAddr        string `envconfig:"DELAY_HTTP_ADDR" desc:"off, or the address of the page and of /healthz, /readyz, /status and /metrics"`
	HTTPActions     string `envconfig:"DELAY_HTTP_ACTIONS" default:"off" desc:"on allows viewers with a token to act on the page: cancel, move, fire, resend, remove, pause, resume"`
	HTTPToken       string `envconfig:"DELAY_HTTP_TOKEN" secret:"true" desc:"token with which viewers log in to the page, at least 16 bytes; several are comma separated, and may have names for the log, as in ann:…,bob:…"`
	HTTPRows        string `envconfig:"DELAY_HTTP_ROWS" default:"auto" desc:"who may see rows on the page, with ids, keys and targets: open (anyone), token, or auto (anyone if DELAY_HTTP_ADDR is a loopback address, otherwise viewers with a token)"`
	HTTPBodies      string `envconfig:"DELAY_HTTP_BODIES" default:"off" desc:"on allows viewers of rows to see headers and bodies of messages; the log names each viewer of a message"`
	HTTPHosts       string `envconfig:"DELAY_HTTP_HOSTS" desc:"host names under which browsers may open the page, comma separated, in addition to localhost and IP addresses"`
	HTTPContext     string `envconfig:"DELAY_HTTP_CONTEXT" link:"page" desc:"context of the user with which the page connects; by default the user of the NATS_* variables"`
	ShutdownGrace   string `envconfig:"DELAY_SHUTDOWN_GRACE" default:"10s" field:"ShutdownGrace" desc:"maximum time of a clean stop; three quarters of it are for outstanding acknowledgements"`
	LogLevel        string `envconfig:"DELAY_LOG_LEVEL" default:"info" desc:"lowest level that is logged: debug, info, warn or error"`
	LogFormat       string `envconfig:"DELAY_LOG_FORMAT" default:"auto" desc:"text, json, or auto: text on a terminal, otherwise json"`

	EmbeddedListen   string `envconfig:"DELAY_EMBEDDED_LISTEN" desc:"address on which the embedded server listens"`
	EmbeddedDir      string `envconfig:"DELAY_EMBEDDED_DIR" desc:"data directory of the embedded server"`
	EmbeddedSync     string `envconfig:"DELAY_EMBEDDED_SYNC" default:"1s" desc:"interval between two fsyncs of the embedded server; always means an fsync after each write"`
	EmbeddedUser     string `envconfig:"DELAY_EMBEDDED_USER" desc:"user of the embedded server, for the broker and for clients; without it, clients need no user, unless DELAY_EMBEDDED_CONFIG has users"`
	EmbeddedPassword string `envconfig:"DELAY_EMBEDDED_PASSWORD" secret:"true" desc:"password of DELAY_EMBEDDED_USER"`
	EmbeddedConfig   string `envconfig:"DELAY_EMBEDDED_CONFIG" desc:"configuration file of nats-server, for the embedded server: users, accounts, TLS, limits"`
}

// A variable has the tags and the value of a field of settings.
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

// readSettings reads the environment. An empty variable, such as "NATS_CREDS=" in a compose file, counts as not set.
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

// isSet reports whether the environment has a value for the setting. A default or a value in a context does not count.
func isSet(name string) bool {
	return os.Getenv(name) != "" || !strings.HasPrefix(name, envPrefix) && os.Getenv(envPrefix+name) != ""
}

// Overrides reports which settings the environment sets, among those that a command can also read from the streams.
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
		" Durations are written 1d12h, 30m or 1500ms.\nA context is a context of the NATS CLI, by name or path.\n\n"+
		"A lane is a stream in which messages wait: a level (each message waits equally long), the intake (for delays\n"+
		"without a level), a retry lane, the pauses or the timers. An instance is a running broker.\n\n"+
		"NAME\tDEFAULT\tMEANING\n")
	for _, v := range new(settings).variables() {
		fmt.Fprintf(table, "%s\t%s\t%s\n", v.name(), v.defaultValue(), v.Get("desc"))
	}
	return table.Flush()
}
