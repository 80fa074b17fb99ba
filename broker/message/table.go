package message

import (
	"slices"
	"strings"
	"time"
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
	name   string
	in     Place
	field  field  // the part of a request that the header describes; zero if there is none
	tag    byte   // identifies the field in an encoded request; zero without a field. Tags are never changed
	option option // how a client writes the field; zero if the header is no option
	target string // the name of the header at the target, if it differs
	apart  bool   // between lanes, the message has the header itself: in a state, a long text would be a third longer
	edit   bool   // an operator may change the header of a dead letter
}

// option converts a field between a request and the notation of clients.
type option struct {
	parse func(p Policy, r *Request, value string) *Problem // not called for a missing header
	text  func(r Request) string
}

// table has one row for each header whose name begins with Delay-, in the order in which the fields are encoded.
var table = []row{
	// Options of a request.
	{name: HeaderUntil, in: InPlain | InTimer | InSeries, edit: true},
	{name: HeaderFor, in: InTimer | InSeries},
	{name: HeaderSpread, in: InPlain | InTimer | InSchedule},
	{name: HeaderTarget, in: InPlain | InMarker | InEntry, tag: 1, field: field{
		text: func(r *record) *string { return &r.Target }}},
	{name: HeaderDeliver, in: anyRequest | stored, tag: 2, edit: true, option: option{parseMode, modeText}, field: field{
		text:  func(r *record) *string { return (*string)(&r.Mode) },
		valid: func(v string) bool { return v == "" || slices.Contains(Modes(), Mode(v)) }}},
	{name: HeaderExpires, in: anyRequest | stored, tag: 3, edit: true, option: option{parseExpires, expiresText},
		field: field{moment: func(r *record) *time.Time { return &r.Expires }}},
	{name: HeaderTTL, in: InPlain | InTimer | InSeries | stored | InDelivery, tag: 4, edit: true,
		option: option{readTTL, ttlText}, target: HeaderNatsTTL, field: field{
			text: func(r *record) *string { return &r.TTL }, valid: validTTL}},
	{name: HeaderMaxAttempts, in: anyRequest | stored, tag: 5, edit: true,
		option: option{parseMaxAttempts, maxAttemptsText},
		field:  field{count: func(r *record) *int { return &r.MaxAttempts }}},
	{name: HeaderRateKey, in: anyRequest | stored, tag: 6, edit: true,
		option: option{parseRateKey, rateKeyText}, field: field{
			text:  func(r *record) *string { return &r.RateKey },
			valid: func(v string) bool { return v == "" || validRateKey(v) }}},

	// Of the sets of timers: package entry parses them.
	{name: HeaderCancel, in: InTimer}, {name: HeaderWord, in: InTimer | InSeries | InEntry},
	{name: HeaderMaxWait, in: InTimer},
	{name: HeaderEvery, in: InSeries | InEntry}, {name: HeaderCron, in: InSeries | InEntry},
	{name: HeaderZone, in: InSeries | InEntry},
	{name: HeaderJitter, in: InSeries | InEntry}, {name: HeaderRounds, in: InSeries | InEntry},
	{name: HeaderMissed, in: InSeries | InEntry}, {name: HeaderLast, in: InSeries | InEntry},
	{name: HeaderOwner, in: InSeries | InEntry},

	// The state of a message.
	{name: HeaderID, in: everywhere | InEntry, tag: 7, field: field{
		text: func(r *record) *string { return &r.ID }, required: true, valid: validID}},
	{name: HeaderAccepted, in: everywhere, tag: 8, field: field{
		moment: func(r *record) *time.Time { return &r.Accepted }, required: true}},
	{name: HeaderDue, in: everywhere | InEntry, tag: 9, field: field{
		moment: func(r *record) *time.Time { return &r.Due }, required: true}},
	{name: HeaderMsgID, in: everywhere, tag: 10, apart: true, field: field{
		text: func(r *record) *string { return &r.MsgID }}},
	{name: HeaderSeries, in: everywhere, tag: 11, field: field{number: func(r *record) *uint64 { return &r.Series }}},
	{name: HeaderRound, in: everywhere, tag: 12, field: field{count: func(r *record) *int { return &r.Round }}},
	{name: HeaderScheduler, in: everywhere, tag: 13, field: field{text: func(r *record) *string { return &r.Scheduler }}},
	{name: HeaderScheduleNext, in: stored | InDelivery, tag: 14, field: field{
		text: func(r *record) *string { return &r.ScheduleNext }, valid: validToken}},
	{name: HeaderRollup, in: stored | InDelivery, tag: 15, target: headerRollup, field: field{
		flag: func(r *record) *bool { return &r.Rollup }}},
	{name: HeaderSubject, in: stored | InMarker, tag: 16, field: field{
		text: func(r *record) *string { return &r.Subject }, valid: validSubject}},
	{name: HeaderHop, in: stored | InMarker, tag: 17, field: field{count: func(r *record) *int { return &r.Hop }}},
	{name: HeaderAttempts, in: stored | InDelivery, tag: 18, field: field{
		count: func(r *record) *int { return &r.Attempts }}},
	{name: HeaderFirstFailure, in: stored, tag: 19, field: field{
		moment: func(r *record) *time.Time { return &r.FirstFailure }}},
	{name: HeaderLastFailure, in: stored, tag: 20, field: field{
		moment: func(r *record) *time.Time { return &r.LastFailure }}},
	{name: HeaderRetryAt, in: InLane, tag: 21, field: field{moment: func(r *record) *time.Time { return &r.RetryAt }}},
	{name: HeaderPaced, in: InLane, tag: 22, field: field{
		text: func(r *record) *string { return &r.Reservation }, valid: validToken}},
	{name: HeaderReleased, in: InLane, tag: 23, field: field{
		text: func(r *record) *string { return &r.ResumedPause }, valid: validToken}},
	{name: HeaderLastError, in: InLane, tag: 24, field: field{
		text: func(r *record) *string { return &r.LastError }, valid: validReason}},
	{name: HeaderDeferred, in: InLane, tag: 25, field: field{
		text: func(r *record) *string { return &r.DeferralReason }, valid: validReason}},
	{name: HeaderAllowed, in: InLane, tag: 26, field: field{count: func(r *record) *int { return &r.AllowedRefusals }}},
	{name: HeaderRefusals, in: stored, tag: 27, field: field{
		text: func(r *record) *string { return &r.EarlierRefusals }, valid: validRefusals}},
	{name: HeaderPauseAfter, in: InSeries | InLane, tag: 28, field: field{
		count: func(r *record) *int { return &r.PauseAfter }}},
	{name: HeaderFailures, in: InLane, tag: 29, field: field{count: func(r *record) *int { return &r.Failures }}},
	{name: HeaderFailedRound, in: InLane, tag: 30, field: field{count: func(r *record) *int { return &r.FailedRound }}},

	// The rest of a broker's messages.
	{name: HeaderState, in: InLane | InMarker | InEntry}, {name: HeaderSeal, in: stored | InMarker | InEntry},
	{name: HeaderTimer, in: InMarker},
	{name: HeaderFormat, in: InLetter}, {name: HeaderErrorCode, in: InLetter}, {name: HeaderError, in: InLetter},
	{name: HeaderFired, in: InEntry}, {name: HeaderOver, in: InEntry}, {name: HeaderFirst, in: InEntry},
	{name: HeaderPlanned, in: InEntry}, {name: HeaderNext, in: InEntry}, {name: HeaderNextWait, in: InEntry},
}

func rowsIn(p Place) (rows []*row) {
	for i := range table {
		if table[i].in&p != 0 {
			rows = append(rows, &table[i])
		}
	}
	return rows
}

// HeadersOf returns the names of the headers that a kind of message may have.
func HeadersOf(p Place) (names []string) {
	for _, r := range rowsIn(p) {
		names = append(names, r.name)
	}
	return names
}

// Options returns the names of the headers with the delivery options of a request.
func Options() (names []string) {
	for i := range table {
		if table[i].option.parse != nil {
			names = append(names, table[i].name)
		}
	}
	return names
}

// OptionHeader returns the delivery options of the request in the notation of clients. Delay-Expires is a duration
// after the due time.
func (r Request) OptionHeader() Header {
	h := make(Header, 4)
	for i := range table {
		if write := table[i].option.text; write != nil {
			Put(h, table[i].name, write(r))
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

// The rows of the headers that each kind of message has, and of all headers with a field.
var (
	laneRows, markerRows     = rowsIn(InLane), rowsIn(InMarker)
	letterRows, deliveryRows = rowsIn(InLetter), rowsIn(InDelivery)
	fieldRows                = slices.DeleteFunc(rowsIn(^Place(0)), func(r *row) bool { return r.tag == 0 })
)

// rowsByTag has the rows with a field, by their tags.
var rowsByTag = func() (rows [256]*row) {
	for i := range table {
		if tag := table[i].tag; tag > 0 {
			rows[tag] = &table[i]
		}
	}
	return rows
}()
