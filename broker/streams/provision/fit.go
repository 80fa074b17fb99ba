package provision

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
)

// ErrFit is returned before the first change of a stream if the account, the server or the user allows less than the
// broker needs. The error has all problems, each with the need, the limit and the setting that changes it.
var ErrFit = errors.New("the account or the server allows less than the broker needs")

// minConsumers is the number of consumers of one stream that a broker needs: its reader's, and that of a reader whose
// connection was lost, which the server keeps for a while.
const minConsumers = 2

// A Need is what the broker needs of one limit.
type Need struct {
	What    string `json:"what"`
	Need    string `json:"need"`
	Limit   string `json:"limit"`
	Setting string `json:"setting,omitempty"` // how to change the limit or the need, if the need exceeds the limit
	Fits    bool   `json:"fits"`
}

func (n Need) String() string {
	return fmt.Sprintf("%s: need %s, limit %s: %s", n.What, n.Need, n.Limit, n.Setting)
}

// Resources are what an active broker uses of the limits that count.
type Resources struct {
	Streams       int `json:"streams"`
	Consumers     int `json:"consumers"`     // in all streams; for a while, a stream has two after a connection was lost
	Subscriptions int `json:"subscriptions"` // of the connection that has the most
	Connections   int `json:"connections"`   // without those of the page and of commands
}

// ResourcesOf returns the resources of the broker of the wanted streams: a consumer for each lane that it always reads,
// three subscriptions for each of these consumers, and some for requests and answers.
func ResourcesOf(want []streams.Spec) Resources {
	r := Resources{Streams: len(want), Connections: 4}
	for _, s := range want {
		if s.Kind.IsLane() && s.Kind != streams.Paused { // a pause has a consumer only after it was resumed
			r.Consumers++
		}
	}
	r.Subscriptions = max(3*r.Consumers+1, controlSubscriptions)
	return r
}

// controlSubscriptions is the number of subscriptions of the control connection: to its inbox, to the announcements of
// other instances, and to the requests of clients and operators.
const controlSubscriptions = 30

// Allowed are the limits with which Fit compares the needs.
type Allowed struct {
	Account       *jetstream.AccountInfo
	MaxPayload    int64 // of the server, the account and the user
	Subscriptions bool  // a connection may have as many subscriptions as the broker needs
	// Duplicates is the server's limit of a duplicate window; zero if there is none, or if it was not asked for.
	Duplicates time.Duration
}

// Fit compares the needs of the wanted streams with what is allowed. Infos are the account's streams. A stream that
// exists needs nothing more.
func Fit(want []streams.Spec, infos map[string]*jetstream.StreamInfo, allowed Allowed) []Need {
	var f fit
	f.count("bytes of a message", minPayload, allowed.MaxPayload,
		"raise max_payload of the server, or payload of the account or user")
	enough := map[bool]string{true: "enough", false: "fewer"}[allowed.Subscriptions]
	f.add("subscriptions of a connection", strconv.Itoa(subscriptionsOf(want)), enough, allowed.Subscriptions,
		"raise max_subscriptions of the server, or subs of the account or user, or use fewer DELAY_LEVELS")
	if len(want) == 0 {
		return f.list
	}
	missing := missingOf(want, infos)
	f.overlaps(want, missing, infos)
	f.duplicates(missing, allowed.Duplicates)
	if allowed.Account == nil {
		return f.list
	}
	replicas := strconv.Itoa(want[0].Replicas)
	if tier, tiered, found := tierOf(allowed.Account, replicas); found {
		f.storage(missing, tier, tiered)
	} else {
		f.add("tier for "+replicas+" replicas", "R"+replicas,
			strings.Join(slices.Sorted(maps.Keys(allowed.Account.Tiers)), " "), false,
			"set DELAY_STREAM_REPLICAS to the number of a tier, or give the account this tier")
	}
	return f.list
}

// tierOf returns the usage and the limits for streams with this number of replicas.
func tierOf(a *jetstream.AccountInfo, replicas string) (tier jetstream.Tier, tiered, found bool) {
	if len(a.Tiers) == 0 {
		return a.Tier, false, true
	}
	tier, found = a.Tiers["R"+replicas]
	return tier, true, found
}

// subscriptionsOf returns the number of subscriptions that a connection must be allowed: those in use, and those of
// four resumed pauses.
func subscriptionsOf(want []streams.Spec) int { return ResourcesOf(want).Subscriptions + 12 }

type fit struct{ list []Need }

// add adds a need, with the setting if the need exceeds the limit.
func (f *fit) add(what, need, limit string, fits bool, setting string) {
	n := Need{What: what, Need: need, Limit: limit, Fits: fits}
	if !fits {
		n.Setting = setting
	}
	f.list = append(f.list, n)
}

// count adds the need of a number. A limit of zero or less means that there is none.
func (f *fit) count(what string, need, limit int64, setting string) {
	text := "none"
	if limit > 0 {
		text = strconv.FormatInt(limit, 10)
	}
	f.add(what, strconv.FormatInt(need, 10), text, limit <= 0 || need <= limit, setting)
}

func (f *fit) storage(missing []streams.Spec, tier jetstream.Tier, tiered bool) {
	limits, reserved := tier.Limits, int64(tier.ReservedStore)
	unbounded, largest := 0, int64(0)
	for _, s := range missing {
		if s.MaxBytes <= 0 {
			unbounded++
		}
		bytes := s.MaxBytes
		if !tiered {
			bytes *= int64(s.Replicas) // the limit of a tier is that of one copy
		}
		reserved, largest = reserved+bytes, max(largest, s.MaxBytes)
	}
	f.count("streams", int64(tier.Streams+len(missing)), int64(limits.MaxStreams),
		"raise max_streams of the account, or use fewer DELAY_LEVELS, fewer waits in DELAY_RETRY, DELAY_TIMERS=off, "+
			"DELAY_JOURNAL=off")
	if len(missing) == 0 { // a broker that has run before starts with whatever is left
		return
	}
	f.count("consumers of a stream", minConsumers, int64(limits.MaxConsumers), "raise max_consumers of the account")
	if limits.MaxBytesRequired {
		f.add("max_bytes of each stream", strconv.Itoa(unbounded)+" without", "required", unbounded == 0,
			"set DELAY_STORAGE, such as 1GiB: it bounds all streams of the broker together")
	}
	const lower = "lower DELAY_STORAGE, DELAY_MAX_PENDING_BYTES or DELAY_JOURNAL_BYTES, or raise "
	f.count("bytes of a stream", largest, limits.StoreMaxStreamBytes, lower+"max_stream_bytes of the account")
	if limits.MaxStore >= 0 { // a limit of zero allows no stream
		need := max(reserved, 1)
		f.add("bytes of storage", strconv.FormatInt(need, 10), strconv.FormatInt(limits.MaxStore, 10),
			need <= limits.MaxStore, lower+"the account's storage")
	}
}

// duplicates adds the longest duplicate window of a missing stream.
func (f *fit) duplicates(missing []streams.Spec, limit time.Duration) {
	window := longestDuplicates(missing)
	if window == 0 {
		return
	}
	text := "none"
	if limit > 0 {
		text = limit.String()
	}
	f.add("duplicate window", window.String(), text, limit == 0 || window <= limit,
		"lower DELAY_DEDUP_WINDOW, and set DELAY_JOURNAL=off if the limit is below 1m, or raise "+
			"duplicate_window in the limits of the server's jetstream")
}

func longestDuplicates(specs []streams.Spec) (window time.Duration) {
	for _, s := range specs {
		window = max(window, s.Duplicates)
	}
	return window
}

// missingOf returns the wanted streams that do not exist.
func missingOf(want []streams.Spec, infos map[string]*jetstream.StreamInfo) []streams.Spec {
	return slices.DeleteFunc(slices.Clone(want), func(s streams.Spec) bool { return infos[s.Stream] != nil })
}

// overlaps adds each stream of others that listens on a subject of a missing stream.
func (f *fit) overlaps(want, missing []streams.Spec, infos map[string]*jetstream.StreamInfo) {
	for _, name := range slices.Sorted(maps.Keys(infos)) {
		if _, ours := streams.SpecOf(want, name); ours || streams.IsOf(infos[name].Config, want[0].Prefix) {
			continue
		}
		for _, s := range missing {
			if subject := message.FirstOverlap(infos[name].Config.Subjects, s.Subjects); subject != "" {
				f.add("subjects of "+s.Stream, "no other stream", name+" listens on "+subject, false,
					"remove the subject from that stream: nats stream edit "+name)
				break
			}
		}
	}
}

// Unfit returns an ErrFit with all needs that exceed their limits, or nil.
func Unfit(needs []Need) error {
	var problems []error
	for _, n := range needs {
		if !n.Fits {
			problems = append(problems, errors.New(n.String()))
		}
	}
	if problems == nil {
		return nil
	}
	return fmt.Errorf("%w:\n%w", ErrFit, errors.Join(problems...))
}

// Needs tests the limits of one connection, and returns what the wanted streams need. If account is nil, the needs of
// the account are left out. API has the connection. If mayCreate is false, the user need not have the right to create a
// stream, and Needs does not ask for the limit of the duplicate window.
func Needs(
	ctx context.Context, api jsapi.Client, account *jetstream.AccountInfo, want []streams.Spec,
	infos map[string]*jetstream.StreamInfo, mayCreate bool,
) []Need {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	allowed := Allowed{
		Account: account, MaxPayload: api.Conn.MaxPayload(),
		Subscriptions: maySubscribe(ctx, api.Conn, subscriptionsOf(want)),
	}
	if missing := missingOf(want, infos); mayCreate && longestDuplicates(missing) > 0 {
		allowed.Duplicates = maxDuplicates(ctx, api, missing)
	}
	return Fit(want, infos, allowed)
}

// maxDuplicates returns the server's limit of a duplicate window if it is shorter than a missing stream needs, or zero.
// No answer of the server has this limit. So maxDuplicates requests a stream that every server refuses, because its
// configuration contradicts itself: it has roll-ups, and denies purges. The server checks the window before that.
func maxDuplicates(ctx context.Context, api jsapi.Client, missing []streams.Spec) time.Duration {
	cfg := missing[0].Config()
	cfg.Duplicates, cfg.MaxAge = longestDuplicates(missing), 0
	cfg.AllowRollup, cfg.DenyPurge = true, true
	request := "STREAM.CREATE." + cfg.Name
	ctx, stop := jsapi.WatchRefusal(ctx, api.Conn, api.API+"."+request)
	defer stop()
	err := api.Ask(ctx, request, cfg, nil)
	if err == nil {
		return 0
	}
	_, limit, _ := strings.Cut(err.Error(), "duplicates window can not be larger then server limit of ")
	window, _ := time.ParseDuration(limit) // zero for any other error
	return window
}

// maySubscribe reports whether the server accepts this number of subscriptions on a connection. It makes them on unused
// subjects, and removes them.
func maySubscribe(ctx context.Context, conn *nats.Conn, count int) bool {
	earlier, inbox := conn.LastError(), conn.NewInbox()
	var trial []*nats.Subscription
	defer func() {
		for _, sub := range trial {
			_ = sub.Unsubscribe() // fails only on a closed connection
		}
	}()
	for i := range count - conn.NumSubscriptions() {
		sub, err := conn.Subscribe(inbox+"."+strconv.Itoa(i), func(*nats.Msg) {})
		if err != nil {
			return true // the connection is lost; another request reports that
		}
		trial = append(trial, sub)
	}
	if conn.FlushWithContext(ctx) != nil {
		return true
	}
	err := conn.LastError() // the server sends its refusals before the answer to the flush
	return err == earlier || !errors.Is(err, nats.ErrMaxSubscriptionsExceeded)
}
