package schedules

// deviations has the reason for each difference between the broker and the server, by section and name of the rule.
var deviations = map[string]string{
	"Times/`@at` 400 days ahead":                                     "a limit that the operator sets",
	"Times/a bare time":                                              "NATS CLIs until 0.4.0 send it, and mean @at",
	"Times/an empty `Nats-Schedule`":                                 noOrdinary,
	"Intervals/`@every 1500ms`, published 0.3 s after a full second": noDrift,
	"Intervals/`@every 9000h`":                                       "a limit that the operator sets",
	"Time zones/`Local`":                                             ofEachHost,
	"Time to live/`Nats-Schedule-TTL: 876000h`":                      inSeconds,
	"Time to live/`Nats-Schedule-TTL: 2562047h`":                     noCentury,
	"Time to live/`Nats-Schedule-TTL: 99999999999`":                  noCentury,
	"Targets/another schedule's subject":                             "a delivery there would be a request",
	"Targets/in another stream":                                      "this is the purpose of the broker",
	"Targets/without a stream, and not allowed":                      "the setting lists the allowed targets",
	"Time to live/`Nats-Schedule-TTL: 1h0m0s`":                       inSeconds,
	"Time to live/`Nats-Schedule-TTL: 2500ms`":                       inSeconds,
	"Time to live/`Nats-TTL` before the time":                        "the schedule can never fire: refused immediately",
	"Time to live/`Nats-TTL` and `Nats-Schedule-TTL`":                inSeconds,
	"Sources/`Nats-Schedule-Source` with a last message":             noSource,
	"Sources/`Nats-Schedule-Source` without one":                     noSource,
	"Cancelling/purging its subject":                                 otherSubjects,
	"Cancelling/a message on its subject":                            noOrdinary,
	"Cancelling/`Nats-Schedule-Next: purge`, with a body":            noOrdinary,
	"Cancelling/… on the target's subject: delivered immediately":    ownStream,
	"Cancelling/an interval, deleted":                                anewEachRound,
	"Restarts/`@every 8s`, missed":                                   inStep,
	"Clocks that go forward/`0 0 2 * * *` in `Europe/Berlin`":        oneMoment,
	"Clocks that go forward/`0 30 2 * * *` in `Europe/Berlin`":       oneMoment,
	"Clocks that go forward/`0 15,45 2 * * *` in `Europe/Berlin`":    oneMoment,
	"Clocks that go back/`0 0 2 * * *` in `Europe/Berlin`":           oneMoment,
	"Clocks that go back/`0 30 2 * * *` in `Europe/Berlin`":          oneMoment,
	"Clocks that go back/`0 15,45 2 * * *` in `Europe/Berlin`":       oneMoment,
	"Clocks that go back/`0 */30 2-3 * * *` in `Europe/Berlin`":      oneMoment,
	"Headers that arrive/headers of the scheduler, fires once":       otherNames,
	"Headers that arrive/headers of the scheduler, repeating":        otherNames,
	"Headers that arrive/other headers of the server":                noServerHeaders,
	"Message ids/the same id on another subject":                     "an id deduplicates only on its own subject",
	"Message ids/the same id, after a request with another id":       "an id deduplicates until another id replaces it",
	"Expectations/a sequence of another subject":                     "only the request's own subject",
	"Other requests/without a reply subject":                         maybeAnswer,
	"Other requests/an ordinary message":                             noOrdinary,
	"Other requests/`Nats-Schedule-Target` alone":                    noOrdinary,
	"Other requests/17 tokens in the subject":                        "a limit of subjects",
	"Other requests/70 headers":                                      "a limit of the headers that the broker passes on",
	"Other requests/a header `Delay-Until`":                          "the broker's own headers have a meaning",
}

const (
	noDrift = "without drift: a round is due at the first round's time plus whole intervals; the server rounds to " +
		"seconds before each addition"
	otherSubjects = "schedules have other subjects in the broker's stream: delaytimer._schedule.schedules.a"
	ownStream     = "this is a publish into the target's stream, which has no schedules: cancel, and publish " +
		"to the target"
	anewEachRound   = "the broker stores each round under its own sequence; an empty message ends the schedule"
	inStep          = "one late round, and then the planned times; the server counts from its restart"
	noServerHeaders = "the broker passes on no header that a server may act on, now or later"
	maybeAnswer     = "the message may be an answer of the server to another client; nothing could report a refusal"
	noOrdinary      = "no stream listens there, so nothing can store the message"
	noSource        = "the source may be in any stream, and may change until the schedule fires"
	inSeconds       = "the same to a server, which counts whole seconds"
	oneMoment       = "each local time fires once: a skipped time at the change, a repeated time at its first " +
		"occurrence (timetable/doc.go)"
	ofEachHost = "each instance and each server may have another local zone"
	noCentury  = "the server may remove such a message immediately, since its end of life overflows"
	otherNames = "streams without schedules refuse them; the broker's names are Delay-Scheduler and Delay-Schedule-Next"
)
