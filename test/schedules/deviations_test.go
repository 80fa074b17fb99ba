package schedules

// deviations holds the rules in which the broker differs from the server, by section and name, each with the reason.
var deviations = map[string]string{
	"Times/`@at` 400 days ahead":                                     "a bound that the operator sets",
	"Times/a bare time":                                              "NATS CLIs until 0.4.0 send it, and mean @at",
	"Times/an empty `Nats-Schedule`":                                 noOrdinary,
	"Intervals/`@every 1500ms`, published 0.3 s after a full second": noDrift,
	"Intervals/`@every 9000h`":                                       "a bound that the operator sets",
	"Time zones/`Local`":                                             ofEachHost,
	"Time to live/`Nats-Schedule-TTL: 876000h`":                      inSeconds,
	"Time to live/`Nats-Schedule-TTL: 2562047h`":                     noCentury,
	"Time to live/`Nats-Schedule-TTL: 99999999999`":                  noCentury,
	"Targets/another schedule's subject":                             "what is delivered there would be a request",
	"Targets/of another stream":                                      "what this is for",
	"Targets/of no stream, and not allowed":                          "the setting says which targets may be named",
	"Time to live/`Nats-Schedule-TTL: 1h0m0s`":                       inSeconds,
	"Time to live/`Nats-Schedule-TTL: 2500ms`":                       inSeconds,
	"Time to live/`Nats-TTL` before the time":                        "it can never fire: said at once",
	"Time to live/`Nats-TTL` and `Nats-Schedule-TTL`":                inSeconds,
	"Sources/`Nats-Schedule-Source` with a last message":             noSource,
	"Sources/`Nats-Schedule-Source` without one":                     noSource,
	"Cancelling/purging its subject":                                 otherSubjects,
	"Cancelling/a message on its subject":                            noOrdinary,
	"Cancelling/`Nats-Schedule-Next: purge`, with a body":            noOrdinary,
	"Cancelling/… on the target: delivered early":                    ownStream,
	"Cancelling/an interval, deleted":                                anewEachRound,
	"Restarts/`@every 8s`, missed":                                   inStep,
	"Clocks that go forward/`0 0 2 * * *` in `Europe/Berlin`":        oneMoment,
	"Clocks that go forward/`0 30 2 * * *` in `Europe/Berlin`":       oneMoment,
	"Clocks that go forward/`0 15,45 2 * * *` in `Europe/Berlin`":    oneMoment,
	"Clocks that go back/`0 0 2 * * *` in `Europe/Berlin`":           oneMoment,
	"Clocks that go back/`0 30 2 * * *` in `Europe/Berlin`":          oneMoment,
	"Clocks that go back/`0 15,45 2 * * *` in `Europe/Berlin`":       oneMoment,
	"Clocks that go back/`0 */30 2-3 * * *` in `Europe/Berlin`":      oneMoment,
	"Headers that arrive/of the scheduler, once":                     otherNames,
	"Headers that arrive/of the scheduler, repeating":                otherNames,
	"Headers that arrive/others of the server's":                     noServerHeaders,
	"Message ids/the same id on another subject":                     "an id counts for its own subject",
	"Message ids/the same id, replaced meanwhile":                    "an id counts until another one takes its place",
	"Expectations/of another subject":                                "only of the schedule that the request is about",
	"Other requests/without a reply subject":                         maybeAnswer,
	"Other requests/an ordinary message":                             noOrdinary,
	"Other requests/`Nats-Schedule-Target` alone":                    noOrdinary,
	"Other requests/17 tokens in the subject":                        "a bound of subjects",
	"Other requests/70 headers":                                      "a bound of what is passed on",
	"Other requests/a header `Delay-Until`":                          "the broker's own headers mean something",
}

const (
	noDrift = "without drift: each round is the first one and so many intervals; the server rounds to seconds " +
		"before it adds each"
	otherSubjects = "schedules have other subjects in the broker's stream: delaytimer._schedule.schedules.a"
	ownStream     = "that is a publish into the target's own stream, which knows no schedules; cancel, and publish " +
		"to the target"
	anewEachRound   = "each round is stored anew, under a sequence of its own; an empty message ends it"
	inStep          = "one late, and then on in step; the server counts anew from when it is back"
	noServerHeaders = "no header that the server could act on is passed on, whether it does today or not"
	maybeAnswer     = "it may be an answer that the server puts there for somebody else; nothing would say that it was " +
		"refused, either"
	noOrdinary = "no stream listens there that could keep it"
	noSource   = "the source may be in any stream, and change until it fires"
	inSeconds  = "the same to a server, which counts whole seconds"
	oneMoment  = "each time on the clock has one moment: skipped, the next; twice, the first (timetable/doc.go)"
	ofEachHost = "each instance, and each server, has a zone of its own"
	noCentury  = "the server may remove what lives so long at once: the end of its life overflows"
	otherNames = "no other stream would take them; they are Delay-Scheduler and Delay-Schedule-Next"
)
