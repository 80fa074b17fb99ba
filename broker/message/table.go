package message

import (
	"slices"
	"strings"
)

// A Place is a kind of message that may have a header, or a set of these kinds.
type Place uint

// The places. Clients write the headers of the first four, and brokers those of the others.
const (
	InPlain    Place = 1 << iota // a request without a key
	InTimer                      // the set of a named timer
	InSeries                     // the set of a timer that recurs
	InSchedule                   // a request in nats-server's format

	InLane     // a message between lanes, in its state
	InMarker   // the marker of a timer, in its state
	InLetter   // a dead letter
	InDelivery // a message at its target
	InEntry    // a broker's entry of a timer

	anyRequest = InPlain | InTimer | InSeries | InSchedule
	stored     = InLane | InLetter
	everywhere = stored | InMarker | InDelivery
)

// A row describes one header of the protocol. The parser, the state between lanes, dead letters, delivered messages, an
// operator's changes, schedules, extra deliveries of series and the tests of PROTOCOL.md follow from it.
type row struct {
	name string
	in   Place
	tag  byte // identifies the field in an encoded request; zero without a field. Tags are never changed
	// field returns a pointer to the part of a record that the header describes: to a string, a time.Time, an int, a
	// uint64 or a bool. It is nil if there is no such part.
	field    func(*record) any
	required bool                // every record has the field
	valid    func(v string) bool // whether a broker writes this text; nil if every text is valid
	target   string              // the name of the header at the target, if it differs
	apart    bool                // between lanes, the message has the header itself: a state makes a long text longer
	edit     bool                // an operator may change the header of a dead letter

	// parse parses the value of a client's option. It is nil if the header is no option.
	parse func(p Policy, r *Request, value string) *Problem
	text  func(r Request) string // the option in the notation of clients; nil if that is the broker's
}

// table has one row for each header whose name begins with Delay-, in the order in which the fields are encoded.
var table = []row{
	// Options of a request.
	{name: HeaderUntil, in: InPlain | InTimer | InSeries, edit: true},
	{name: HeaderFor, in: InTimer | InSeries},
	{name: HeaderSpread, in: InPlain | InTimer | InSchedule},
	{name: HeaderTarget, in: InPlain | InMarker | InEntry, tag: 1, field: func(r *record) any { return &r.Target }},
	{name: HeaderDeliver, in: anyRequest | stored, tag: 2, field: func(r *record) any { return (*string)(&r.Mode) },
		valid: func(v string) bool { return v == "" || slices.Contains(Modes(), Mode(v)) }, edit: true, parse: parseMode},
	{name: HeaderExpires, in: anyRequest | stored, tag: 3, field: func(r *record) any { return &r.Expires },
		edit: true, parse: parseExpires, text: expiresText},
	{name: HeaderTTL, in: InPlain | InTimer | InSeries | stored | InDelivery, tag: 4,
		field: func(r *record) any { return &r.TTL }, valid: validTTL, target: HeaderNatsTTL,
		edit: true, parse: parseTTL, text: ttlText},
	{name: HeaderMaxAttempts, in: anyRequest | stored, tag: 5, field: func(r *record) any { return &r.MaxAttempts },
		edit: true, parse: parseMaxAttempts},
	{name: HeaderRateKey, in: anyRequest | stored, tag: 6, field: func(r *record) any { return &r.RateKey },
		valid: func(v string) bool { return v == "" || validRateKey(v) }, edit: true, parse: parseRateKey},

	// Of the sets of timers: package entry parses them.
	{name: HeaderCancel, in: InTimer}, {name: HeaderWord, in: InTimer | InSeries | InEntry},
	{name: HeaderMaxWait, in: InTimer},
	{name: HeaderEvery, in: InSeries | InEntry}, {name: HeaderCron, in: InSeries | InEntry},
	{name: HeaderZone, in: InSeries | InEntry},
	{name: HeaderJitter, in: InSeries | InEntry}, {name: HeaderRounds, in: InSeries | InEntry},
	{name: HeaderMissed, in: InSeries | InEntry}, {name: HeaderLast, in: InSeries | InEntry},
	{name: HeaderOwner, in: InSeries | InEntry},

	// The state of a message.
	{name: HeaderID, in: everywhere | InEntry, tag: 7, field: func(r *record) any { return &r.ID },
		required: true, valid: validID},
	{name: HeaderAccepted, in: everywhere, tag: 8, field: func(r *record) any { return &r.Accepted }, required: true},
	{name: HeaderDue, in: everywhere | InEntry, tag: 9, field: func(r *record) any { return &r.Due }, required: true},
	{name: HeaderMsgID, in: everywhere, tag: 10, field: func(r *record) any { return &r.MsgID }, apart: true},
	{name: HeaderSeries, in: everywhere, tag: 11, field: func(r *record) any { return &r.Series }},
	{name: HeaderRound, in: everywhere, tag: 12, field: func(r *record) any { return &r.Round }},
	{name: HeaderScheduler, in: everywhere, tag: 13, field: func(r *record) any { return &r.Scheduler }},
	{name: HeaderScheduleNext, in: stored | InDelivery, tag: 14, field: func(r *record) any { return &r.ScheduleNext },
		valid: validToken},
	{name: HeaderRollup, in: stored | InDelivery, tag: 15, field: func(r *record) any { return &r.Rollup },
		target: headerRollup},
	{name: HeaderSubject, in: stored | InMarker, tag: 16, field: func(r *record) any { return &r.Subject },
		valid: validSubject},
	{name: HeaderHop, in: stored | InMarker, tag: 17, field: func(r *record) any { return &r.Hop }},
	{name: HeaderAttempts, in: stored | InDelivery, tag: 18, field: func(r *record) any { return &r.Attempts }},
	{name: HeaderFirstFailure, in: stored, tag: 19, field: func(r *record) any { return &r.FirstFailure }},
	{name: HeaderLastFailure, in: stored, tag: 20, field: func(r *record) any { return &r.LastFailure }},
	{name: HeaderRetryAt, in: InLane, tag: 21, field: func(r *record) any { return &r.RetryAt }},
	{name: HeaderPaced, in: InLane, tag: 22, field: func(r *record) any { return &r.Reservation }, valid: validToken},
	{name: HeaderReleased, in: InLane, tag: 23, field: func(r *record) any { return &r.ResumedPause }, valid: validToken},
	{name: HeaderLastError, in: InLane, tag: 24, field: func(r *record) any { return &r.LastError }, valid: validReason},
	{name: HeaderDeferred, in: InLane, tag: 25, field: func(r *record) any { return &r.DeferralReason },
		valid: validReason},
	{name: HeaderAllowed, in: InLane, tag: 26, field: func(r *record) any { return &r.AllowedRefusals }},
	{name: HeaderRefusals, in: stored, tag: 27, field: func(r *record) any { return &r.EarlierRefusals },
		valid: validRefusals},
	{name: HeaderPauseAfter, in: InSeries | InLane, tag: 28, field: func(r *record) any { return &r.PauseAfter }},
	{name: HeaderFailures, in: InLane, tag: 29, field: func(r *record) any { return &r.Failures }},
	{name: HeaderFailedRound, in: InLane, tag: 30, field: func(r *record) any { return &r.FailedRound }},

	// The rest of a broker's messages.
	{name: HeaderState, in: InLane | InMarker | InEntry}, {name: HeaderSeal, in: stored | InMarker | InEntry},
	{name: HeaderTimer, in: InMarker},
	{name: HeaderFormat, in: InLetter}, {name: HeaderErrorCode, in: InLetter}, {name: HeaderError, in: InLetter},
	{name: HeaderFired, in: InEntry}, {name: HeaderOver, in: InEntry}, {name: HeaderFirst, in: InEntry},
	{name: HeaderPlanned, in: InEntry}, {name: HeaderNext, in: InEntry}, {name: HeaderNextWait, in: InEntry},
}

func rowsWhere(match func(r *row) bool) (rows []*row) {
	for i := range table {
		if match(&table[i]) {
			rows = append(rows, &table[i])
		}
	}
	return rows
}

// rowsIn returns the rows of the headers that a kind of message may have, and fieldsIn those with a field.
func rowsIn(p Place) []*row { return rowsWhere(func(r *row) bool { return r.in&p != 0 }) }
func fieldsIn(p Place) []*row {
	return rowsWhere(func(r *row) bool { return r.in&p != 0 && r.tag > 0 })
}

func namesOf(rows []*row) (names []string) {
	for _, r := range rows {
		names = append(names, r.name)
	}
	return names
}

// HeadersOf returns the names of the headers that a kind of message may have.
func HeadersOf(p Place) []string { return namesOf(rowsIn(p)) }

// Options returns the names of the headers with the delivery options of a request.
func Options() []string { return namesOf(optionRows) }

// OptionHeader returns the delivery options of the request in the notation of clients. Delay-Expires is a duration
// after the due time.
func (r Request) OptionHeader() Header {
	h, rec := make(Header, 4), &record{Request: r}
	for _, row := range optionRows {
		if row.text != nil {
			Put(h, row.name, row.text(r))
		} else {
			row.put(h, row.name, rec)
		}
	}
	return h
}

// canonicalNames maps the known Delay-* names, in canonical spelling and in lower case, to the canonical spelling.
var canonicalNames = func() map[string]string {
	m := make(map[string]string)
	for _, r := range table {
		m[r.name], m[strings.ToLower(r.name)] = r.name, r.name
	}
	return m
}()

// timerHeaders are the request headers that only a named timer may have, without Delay-For, which Policy.due checks.
var timerHeaders = slices.DeleteFunc(HeadersOf(InTimer|InSeries), func(name string) bool {
	return name == HeaderFor || slices.Contains(HeadersOf(InPlain), name)
})

// The rows of the options, of the fields that each kind of message has, and of all fields.
var (
	optionRows               = rowsWhere(func(r *row) bool { return r.parse != nil })
	laneRows, markerRows     = fieldsIn(InLane), fieldsIn(InMarker)
	letterRows, deliveryRows = fieldsIn(InLetter), fieldsIn(InDelivery)
	fieldRows                = fieldsIn(^Place(0))
)

// rowsByTag has the rows with a field, by their tags.
var rowsByTag = func() (rows [256]*row) {
	for _, r := range fieldRows {
		rows[r.tag] = r
	}
	return rows
}()
