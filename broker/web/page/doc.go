// Package page is what a person sees of a broker in a browser, or with curl, and can do from there.
//
//	GET  /                  the page; plain text for who does not ask for HTML
//	GET  /assets/…          its parts, all embedded: no request leaves the host
//	GET  /api/events        how the fleet is, once a second, as server-sent events; its last hour, and the next
//	GET  /api/history       what it did in the last hour or day
//	GET  /api/ahead         what is due in the next hour, or seven days
//	GET  /api/pending …     rows: messages, timers, dead letters, targets with what each takes in a second
//	POST /api/plan          what an action would do, and to how many
//	POST /api/act           does what was planned
//
// # One producer
//
//	viewer ◀─┐
//	viewer ◀─┼── frames ◀── produce ──┬── Engine.Status             this instance
//	viewer ◀─┘                        ├── Inspector.Fleet           the others, by the control service; once a second
//	                                  └── Inspector.Look, Ahead     streams and forecast; as rarely as they are dear
//
// All viewers get the same frames, which are made and encoded once. Without a viewer nothing runs and no connection is
// open. A viewer that is slow misses frames: for each kind only the latest is kept. Viewers are few (maxViewers), and
// so are questions at a time (maxQuestions).
//
// What the page shows of the past is in memory, in package history: of every instance its own part, which the page adds
// up. It is noted whether somebody looks or not.
//
// # Who may what
//
// The overview shows what /status and /metrics show, to whom they show it. Rows have ids, keys and targets of tenants,
// and reasons in their words: they are shown without a token only where Access.OpenRows says so. Bodies and the values
// of users' headers are hidden unless Access.Bodies allows them. Actions need Access.Actions and a token.
//
//   - The token travels in the header Authorization, and is kept by the page in the tab. There is no cookie, so no
//     other page can act with it, and no URL has it, so no log of a proxy does.
//   - The Host of a request has to be an address, localhost, or a name in Access.Hosts: a stranger's name that is made
//     to resolve to 127.0.0.1 is refused, for reading too.
//   - A request that changes something is JSON, and of the page's own origin.
//   - No script runs but those embedded here, and none of them makes HTML from text: both are said to the browser
//     (Content-Security-Policy, with Trusted Types), which enforces it.
//
// # Plan, then act
//
// An action is planned first. The plan counts, and fixes what it is about: the generation of a timer, the last sequence
// of a listing, the time before which letters died. It is handed out sealed with the token of who asked, and acting
// takes nothing else: so what is done is what was counted, or less. Any instance can act on the plan of another.
//
// The verbs are those of the command line: package service for timers, package inspect for letters and pauses.
package page
