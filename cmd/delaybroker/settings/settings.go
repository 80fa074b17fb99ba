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

// envPrefix begins the names of our own settings.
const envPrefix = "DELAY_"

// Defaults that depend on where the program runs. The Dockerfile links in others (see there): as variables of the image
// they could not be told from the user's, which are refused where they contradict each other.
var (
	defaultHTTPAddr       = "127.0.0.1:8422"
	defaultEmbeddedListen = "127.0.0.1:4222"
	defaultEmbeddedDir    = "./delay-data"
)

var linkedDefaults = map[string]string{
	"DELAY_HTTP_ADDR": defaultHTTPAddr, "DELAY_EMBEDDED_LISTEN": defaultEmbeddedListen,
	"DELAY_EMBEDDED_DIR": defaultEmbeddedDir,
}

// settings are the environment as it is written, defaults filled in. Each field is a row of the table of "serve
// --help", and its tags are all that is known about the variable:
//
//	envconfig  its name
//	default    its value if it is not set or empty
//	desc       its meaning
//	field      the fields of broker.Config that it sets, so that a problem with one names the variable
//	word       a word that is allowed in addition to the broker's values of the field
//	secret     the value must not be shown
//	link       the link whose context it names
//
// All fields are strings, so that all values that cannot be converted are reported at once: see config.
//
// A name of the NATS CLI is read with our prefix too: DELAY_NATS_URL wins over NATS_URL. None of ours may be called
// PORT, HOST or SERVICE_*: for a service named "delay", Kubernetes sets DELAY_PORT to something else.
type settings struct {
	NATSURL      string `envconfig:"NATS_URL" desc:"NATS servers, comma separated; without it and NATS_CONTEXT a server is embedded"`
	NATSContext  string `envconfig:"NATS_CONTEXT" desc:"context of the NATS CLI, by name or path; the selected one is never used"`
	NATSCreds    string `envconfig:"NATS_CREDS" desc:"credentials file of a user"`
	NATSNKey     string `envconfig:"NATS_NKEY" desc:"file with the seed of an nkey"`
	NATSUser     string `envconfig:"NATS_USER" desc:"user, or a token when there is no password"`
	NATSPassword string `envconfig:"NATS_PASSWORD" secret:"true" desc:"password of the user"`
	NATSToken    string `envconfig:"NATS_TOKEN" secret:"true" desc:"authentication token"`
	NATSCert     string `envconfig:"NATS_CERT" desc:"TLS client certificate file"`
	NATSKey      string `envconfig:"NATS_KEY" desc:"TLS client key file"`
	NATSCA       string `envconfig:"NATS_CA" desc:"TLS authorities file, instead of the system's"`

	ReadContext    string `envconfig:"DELAY_READ_CONTEXT" link:"read" desc:"context of the user that reads the lanes, if it is not the one above"`
	WriteContext   string `envconfig:"DELAY_WRITE_CONTEXT" link:"write" desc:"context of the user that writes into the lanes and the dead letters, likewise"`
	DeliverContext string `envconfig:"DELAY_DELIVER_CONTEXT" link:"deliver" desc:"context of the user that publishes to the targets, likewise"`

	Prefix          string `envconfig:"DELAY_PREFIX" default:"delay" field:"Prefix" desc:"root of all subjects and, in upper case, of all stream names"`
	Levels          string `envconfig:"DELAY_LEVELS" default:"default" desc:"levels that new messages take: default, rocketmq, short, or names such as 1s,30s,5m,1h"`
	MaxDelay        string `envconfig:"DELAY_MAX_DELAY" default:"366d" field:"MaxDelay" desc:"longest delay accepted"`
	Attempts        string `envconfig:"DELAY_ATTEMPTS" default:"20" field:"Attempts AttemptRules" desc:"refused deliveries before a message becomes a dead letter; by target as in shop.mail=5,20"`
	Retry           string `envconfig:"DELAY_RETRY" default:"1s,5s,30s" field:"RetryRules RetryJitter" desc:"waits between refused deliveries: after the first, the second, and so on; the last for all others; 1s x2 1m is doubled from 1s to 1m; with ~20% behind them each is longer by up to a fifth, differently for each message; by target as in shop.mail=1s,1m,10m;1s,5s,30s"`
	Deliver         string `envconfig:"DELAY_DELIVER" default:"auto" field:"Deliver" desc:"how targets are reached: auto, stream, core or request; by target as in shop.>=stream,auto"`
	Slack           string `envconfig:"DELAY_SLACK" default:"off" field:"Slack" word:"off" desc:"by how much a message may be late so that several are sent together, as in 10ms"`
	ReplyTimeout    string `envconfig:"DELAY_REPLY_TIMEOUT" default:"5s" field:"ReplyTimeout" desc:"how long a service may take to reply in mode request"`
	Rate            string `envconfig:"DELAY_RATE" field:"Rates" desc:"messages a second for each target, by pattern as in shop.mail=50,reports.*=5; without it no bound"`
	RateByKey       string `envconfig:"DELAY_RATE_BY_KEY" field:"RatesByKey" desc:"messages a second for each Delay-Rate-Key, by pattern as in reports.*=5; it holds in place of DELAY_RATE for messages that have a key"`
	MaxPending      string `envconfig:"DELAY_MAX_PENDING" default:"none" field:"MaxPending" desc:"messages that each level and the intake may hold"`
	MaxPendingBytes string `envconfig:"DELAY_MAX_PENDING_BYTES" default:"none" field:"MaxPendingBytes" desc:"bytes that each level and the intake may hold, as in 10GiB"`
	Journal         string `envconfig:"DELAY_JOURNAL" default:"off" field:"Journal" word:"off" desc:"how long a record of each delivery is kept, as in 7d, for delaybroker journal and where; or off"`
	JournalBytes    string `envconfig:"DELAY_JOURNAL_BYTES" default:"1GiB" field:"JournalBytes" desc:"bytes that these records may take: beyond it the oldest go before their time"`
	Timers          string `envconfig:"DELAY_TIMERS" default:"auto" field:"Timers" desc:"auto creates the stream of named timers if it can; on insists on it; off does not create it. One that is there is served in any case"`
	TimerHistory    string `envconfig:"DELAY_TIMER_HISTORY" default:"1m" field:"TimerHistory" word:"none" desc:"how long the last entry of a timer's subject tells what became of it, or none"`
	ReplyPrefixes   string `envconfig:"DELAY_REPLY_PREFIXES" field:"ReplyPrefixes" desc:"inbox prefixes that requests about timers are answered on, comma separated, besides _INBOX and _R_"`
	Memory          string `envconfig:"DELAY_MEMORY" default:"auto" field:"HoldBytes" desc:"bytes that messages may take in memory, all lanes together, as in 64MiB; auto: by the memory limit, or 256MiB without one"`
	Targets         string `envconfig:"DELAY_TARGETS" field:"Targets" desc:"subjects that may be delivered to, comma separated, with wildcards; without it all"`
	HeaderTargets   string `envconfig:"DELAY_HEADER_TARGETS" field:"HeaderTargets" desc:"subjects that a Delay-Target header may name, likewise; without it none"`
	Schedules       string `envconfig:"DELAY_SCHEDULES" field:"Schedules" desc:"subjects on which schedules are asked for as of nats-server itself, with the targets that they may have, as in schedules.orders.>=orders.>; without targets those of DELAY_HEADER_TARGETS"`
	DedupWindow     string `envconfig:"DELAY_DEDUP_WINDOW" default:"30s" field:"DedupWindow" desc:"how long the streams remember a Nats-Msg-Id"`
	Secret          string `envconfig:"DELAY_SECRET" field:"Secrets" secret:"true" desc:"what messages between lanes are sealed with, at least 16 bytes; while it is changed several, comma separated; without it a secret in the streams' metadata"`
	StreamReplicas  string `envconfig:"DELAY_STREAM_REPLICAS" default:"auto" field:"Replicas" word:"auto" desc:"copies of new streams: auto (3 in a cluster, otherwise 1) or 1 to 5"`
	Provision       string `envconfig:"DELAY_PROVISION" default:"create" desc:"create what is missing, or verify that it is there, for those who make streams by other means"`
	MaxOwners       string `envconfig:"DELAY_MAX_OWNERS" default:"3" field:"MaxOwners" desc:"instances that own lanes; more stand by"`
	Instance        string `envconfig:"DELAY_INSTANCE" field:"Instance" desc:"name of this instance, kept over restarts and no other's: after a crash it resumes at once; without it the host with DELAY_HTTP_ADDR, or DELAY_EMBEDDED_DIR"`
	JSDomain        string `envconfig:"DELAY_JS_DOMAIN" field:"JSDomain" desc:"JetStream domain, to reach it through a leaf node"`
	InboxPrefix     string `envconfig:"DELAY_INBOX_PREFIX" desc:"root of the subjects that answers come to; _INBOX, or what the context says"`
	HTTPAddr        string `envconfig:"DELAY_HTTP_ADDR" desc:"address of the page, and of /healthz, /readyz, /status and /metrics, or off"`
	HTTPActions     string `envconfig:"DELAY_HTTP_ACTIONS" default:"off" desc:"on lets those with a token change something from the page: cancel, move, fire, resend, remove, pause, resume"`
	HTTPToken       string `envconfig:"DELAY_HTTP_TOKEN" secret:"true" desc:"token of the page, of at least 16 bytes; several, comma separated, with the name that the log gives their owner, as in ann:…,bob:…"`
	HTTPRows        string `envconfig:"DELAY_HTTP_ROWS" default:"auto" desc:"who may see rows on the page, with ids, keys and targets: open (anyone), token, or auto (anyone on a loopback DELAY_HTTP_ADDR, otherwise those with a token)"`
	HTTPBodies      string `envconfig:"DELAY_HTTP_BODIES" default:"off" desc:"on lets those who may see rows also see the headers and bodies of messages; the log names who has looked at which"`
	HTTPHosts       string `envconfig:"DELAY_HTTP_HOSTS" desc:"host names that the page is called by, comma separated, besides localhost and addresses"`
	HTTPContext     string `envconfig:"DELAY_HTTP_CONTEXT" link:"page" desc:"context of the user that the page looks and acts as, if it is not the one above"`
	ShutdownGrace   string `envconfig:"DELAY_SHUTDOWN_GRACE" default:"10s" field:"ShutdownGrace" desc:"how long a stop waits for outstanding acknowledgements"`
	LogLevel        string `envconfig:"DELAY_LOG_LEVEL" default:"info" desc:"debug, info, warn or error"`
	LogFormat       string `envconfig:"DELAY_LOG_FORMAT" default:"auto" desc:"text, json, or auto: text on a terminal, otherwise json"`

	EmbeddedListen   string `envconfig:"DELAY_EMBEDDED_LISTEN" desc:"address of the embedded server"`
	EmbeddedDir      string `envconfig:"DELAY_EMBEDDED_DIR" desc:"data of the embedded server"`
	EmbeddedSync     string `envconfig:"DELAY_EMBEDDED_SYNC" default:"1s" desc:"how often the embedded server syncs to disk; always for every write"`
	EmbeddedUser     string `envconfig:"DELAY_EMBEDDED_USER" desc:"user of the embedded server, and who the broker is on it; without it and users in DELAY_EMBEDDED_CONFIG it asks nobody"`
	EmbeddedPassword string `envconfig:"DELAY_EMBEDDED_PASSWORD" secret:"true" desc:"password of that user"`
	EmbeddedConfig   string `envconfig:"DELAY_EMBEDDED_CONFIG" desc:"configuration file of nats-server for the embedded one: users, accounts, TLS, limits"`
}

// A variable is a field of settings: its tags, and its value.
type variable struct {
	reflect.StructTag
	value *string
}

func (v variable) name() string { return v.Get("envconfig") }

func (v variable) standard() string { return cmp.Or(v.Get("default"), linkedDefaults[v.name()]) }

// variables returns the variables in the order of the table.
func (s *settings) variables() []variable {
	fields := reflect.ValueOf(s).Elem()
	all := make([]variable, fields.NumField())
	for i := range all {
		all[i] = variable{fields.Type().Field(i).Tag, fields.Field(i).Addr().Interface().(*string)}
	}
	return all
}

// byField returns the variables by the fields of broker.Config that they set.
func (s *settings) byField() map[string]variable {
	all := make(map[string]variable)
	for _, v := range s.variables() {
		for field := range strings.FieldsSeq(v.Get("field")) {
			all[field] = v
		}
	}
	return all
}

// contexts returns the variables that name the context of a link with a user of its own.
func (s *settings) contexts() []variable {
	return slices.DeleteFunc(s.variables(), func(v variable) bool { return v.Get("link") == "" })
}

// readSettings reads the environment. An empty variable, as "NATS_CREDS=" in a compose file, counts as not set.
func readSettings() (s settings) {
	if err := envconfig.Process("", &s); err != nil {
		panic(fmt.Sprintf("bug: settings are strings: %s", err)) // it fails only for a value that it cannot convert
	}
	for _, v := range s.variables() {
		if !strings.HasPrefix(v.name(), envPrefix) {
			*v.value = cmp.Or(os.Getenv(envPrefix+v.name()), *v.value)
		}
		*v.value = cmp.Or(*v.value, v.standard()) // envconfig gives a default only to a variable that is not set
	}
	return s
}

// lookup returns the value of a variable in the environment.
func lookup(name string) string {
	if strings.HasPrefix(name, envPrefix) {
		return os.Getenv(name)
	}
	return cmp.Or(os.Getenv(envPrefix+name), os.Getenv(name))
}

// isSet reports whether the environment, not a default or a context, gives the setting.
func isSet(name string) bool { return lookup(name) != "" }

// Given says which settings the environment gives, of those that can be read off the streams instead.
func Given() inspect.Given {
	return inspect.Given{Prefix: isSet("DELAY_PREFIX"), Levels: isSet("DELAY_LEVELS"), Retry: isSet("DELAY_RETRY")}
}

// names returns the names of the variables, in the order of the table.
func names() (all []string) {
	for _, v := range new(settings).variables() {
		all = append(all, v.name())
	}
	return all
}

// WriteTable prints the table of "serve --help".
func WriteTable(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "usage: delaybroker [serve]\n\nSettings are environment variables. An empty one counts as not set."+
		" Durations are written 1d12h, 30m or 1500ms.\n\nNAME\tDEFAULT\tMEANING\n")
	for _, v := range new(settings).variables() {
		fmt.Fprintf(table, "%s\t%s\t%s\n", v.name(), v.standard(), v.Get("desc"))
	}
	return table.Flush()
}
